//! Assertions of functions that return what is broken, in place of a panic.

/// Returns a text unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(format!($($text)+));
        }
    };
}

/// Returns a text with both sides unless they are equal.
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($text:tt)+) => {
        let (left, right) = (&$left, &$right);
        if left != right {
            return Err(format!("{}: {left:?}, not {right:?}", format_args!($($text)+)));
        }
    };
}
