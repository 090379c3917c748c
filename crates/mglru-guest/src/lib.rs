//! Defines the messages between the host and the program inside the booted kernel. The host packs
//! an [`Order`] into the initramfs; the guest answers with one [`Report`] a line on a serial port
//! of its own. The program itself is the binary of this crate; how processor time is spent for real
//! stands here for other backends too.

pub mod kernel_text;
pub mod order;
pub mod processor;
pub mod report;

pub use order::Order;
pub use report::Report;
