mod chains;
mod memory;
mod parts;
mod programs;
