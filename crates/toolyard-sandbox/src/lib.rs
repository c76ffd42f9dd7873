//! Where other people's code runs: walls around programs, and scripts in them.
