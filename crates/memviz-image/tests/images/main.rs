//! Hand-made images: what is read from good ones, what hostile ones are answered with, and random damage.
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy only knows the test functions")]

mod builder;
mod good;
mod hostile;
mod mutations;
