//! Batches over HTTP: what is taken, what is told of it, and how it goes on.

mod desk;
mod files;
mod going_on;
mod guards;
mod large;
mod outages;
mod outcomes;
mod rows;
