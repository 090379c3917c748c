//! Tests of the page as text; a browser looks at it in `tests/program`.

use super::*;
use crate::plan::Plan;
use crate::record::example;

fn page() -> String {
    let text = "name=\"t\"\ntitle=\"t\"\nvariants=[\"before\",\"a<b\"]\nmetrics=[\"ops_per_s\"]";
    let plan = Plan::parse("t", text, &[]).unwrap();
    let records = vec![example("before", 1, 1.0), example("a<b", 1, 2.0)];
    let beside = Beside { command: "mglru run t".into(), ..Beside::default() };
    html(&Report::new(&plan, "sim", records), &beside)
}

#[test]
fn the_page_holds_every_comparison_and_escapes_names() {
    let page = page();
    let own = &page[..page.find("<script>").unwrap()];
    assert!(own.contains("a&lt;b") && !own.contains("a<b"), "{own}");
    assert!(own.contains("2.000") && own.contains("a\\u003cb"), "{own}");
    assert!(own.contains("mglru run t"), "{own}");
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let page = page();
    assert!(TEMPLATE.matches(" src=").count() + TEMPLATE.matches("<link").count() == 0);
    assert_eq!(page.matches("</script>").count(), 8, "facts, three libraries, four of ours");
}
