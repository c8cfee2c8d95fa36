mod chains;
mod memory;
mod open;
mod parts;
mod programs;
