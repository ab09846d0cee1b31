//! Keys of the HTTP API: made and revoked by commands, checked in another process's memory.

mod checking;
mod commands;
mod following;
mod ring;
mod secrecy;
