//! Sizes of the folios that a window of a file is filled with (spec §LF.3, §LF.5). An order is a
//! power of two of pages; a folio lies at a multiple of its own size.

/// Returns the order of a folio at page `index` where `wanted` is asked for and `limit` is the last
/// page.
pub fn order_at(index: u64, wanted: u8, limit: u64) -> u8 {
    let aligned = if index == 0 { wanted } else { wanted.min(index.trailing_zeros() as u8) };
    let fits = (limit + 1 - index.min(limit)).ilog2() as u8;
    aligned.min(fits)
}

/// Returns the order that a write of `bytes` asks for at page `index`; at most `most`.
pub fn order_of_write(index: u64, bytes: u64, most: u8) -> u8 {
    let pages = (bytes >> 12).max(1);
    order_at(index, most, index + pages - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(start: u64, wanted: u8, limit: u64) -> Vec<u8> {
        let mut orders = Vec::new();
        let mut at = start;
        while at <= limit {
            let order = order_at(at, wanted, limit);
            orders.push(order);
            at += 1 << order;
        }
        orders
    }

    #[test]
    fn a_window_is_filled_with_aligned_folios_that_fit() {
        assert_eq!(fill(4, 4, 35), [2, 3, 4, 2], "the example of LF.3");
        assert_eq!(fill(0, 5, 31), [5]);
        assert_eq!(fill(0, 0, 3), [0; 4]);
        assert_eq!(fill(0, 9, 6), [2, 1, 0]);
        assert_eq!(fill(7, 3, 7), [0]);
    }

    #[test]
    fn a_write_asks_for_what_is_left_of_it() {
        assert_eq!(order_of_write(0, 1 << 20, 9), 8, "the example of LF.5");
        assert_eq!(order_of_write(3, 10_000, 9), 0, "unaligned");
        assert_eq!(order_of_write(4, 5_904, 9), 0);
        assert_eq!(order_of_write(4, 10_000, 9), 1);
        assert_eq!(order_of_write(0, 100, 9), 0);
        assert_eq!(order_of_write(0, 8 << 20, 9), 9);
        assert_eq!(order_of_write(0, 1 << 20, 3), 3);
    }
}
