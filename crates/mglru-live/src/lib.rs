//! Tools for programs that run under the pager: [`steer`] shows and changes a running pager from
//! outside (socket, cgroup-like files, metrics, tables); [`measure`] measures pagers on this host.

pub mod measure;
pub mod steer;
