//! What operators lay down in the database: by the commands, as workers see it, and as it is asked
//! for with each batch of jobs.

mod changes;
mod commands;
mod desk;
mod facts;
mod imports;
mod keys;
mod mistakes;
mod spelling;
