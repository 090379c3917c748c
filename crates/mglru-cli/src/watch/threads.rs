//! Puts into words what threads do and what they wait for.

use mglru::Throttle;
use mglru::types::Reclaimer;
use mglru_sim::live::{Act, Actor, Wait};

/// Puts those first that reclaim, then those held up for memory; those that do nothing stay out.
pub(super) fn busy(actors: &[Actor]) -> Vec<&Actor> {
    let mut busy: Vec<&Actor> = actors.iter().filter(|actor| actor.act != Act::Idle).collect();
    busy.sort_by_key(|actor| rank(actor));
    busy
}

fn rank(actor: &Actor) -> u8 {
    match (actor.act, actor.wait) {
        (Act::Reclaims { .. } | Act::Compacts, _) => 0,
        (_, Some(Wait::Throttled(_) | Wait::DirtyLimit | Wait::SwapQueue)) => 1,
        (_, None) => 2,
        (_, Some(Wait::Write | Wait::Sync | Wait::Data)) => 3,
        (_, Some(Wait::Processor)) => 4,
        (_, Some(Wait::Time | Wait::Barrier)) => 5,
    }
}

/// Says in one line how many threads do what.
pub(super) fn summary(actors: &[Actor]) -> String {
    let count = |is: fn(&Actor) -> bool| actors.iter().filter(|actor| is(actor)).count();
    let parts = [
        (count(|a| matches!(a.act, Act::Reclaims { .. } | Act::Compacts)), "reclaim"),
        (count(|a| matches!(a.act, Act::Other(_)) && a.wait.is_none()), "run"),
        (count(|a| matches!(a.act, Act::Other(_)) && a.wait.is_some()), "wait"),
        (count(|a| a.act == Act::Idle), "idle or ended"),
    ];
    let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    parts.collect::<Vec<_>>().join(", ")
}

/// Says what a thread does.
pub(super) fn act(act: Act, groups: &[String]) -> String {
    match act {
        Act::Reclaims { by, target, priority } => {
            let by = match by {
                Reclaimer::Kswapd => "balances its node",
                Reclaimer::Direct => "reclaims",
                Reclaimer::Proactive => "memory.reclaim",
            };
            let target = target.and_then(|at| groups.get(at));
            let of = target.map_or(String::new(), |path| format!(" {path}"));
            format!("{by}{of}, prio {priority}")
        }
        Act::Compacts => "compacts".to_string(),
        Act::Other(word) => word.to_string(),
        Act::Idle => "idle".to_string(),
    }
}

/// Says what a thread waits for.
pub(super) fn wait(wait: Option<Wait>) -> &'static str {
    match wait {
        None => "",
        Some(Wait::Processor) => "for a processor",
        Some(Wait::Throttled(reason)) => match reason {
            Throttle::Writeback => "throttled: writeback",
            Throttle::Isolated => "throttled: too many isolated",
            Throttle::Noprogress => "throttled: no progress",
            Throttle::Congested => "throttled: congested",
            Throttle::Folio(_) => "throttled: a folio's write",
        },
        Some(Wait::Data) => "for data",
        Some(Wait::Write) => "for a write to end",
        Some(Wait::SwapQueue) => "for room in swap's queue",
        Some(Wait::Sync) => "for writeback of files",
        Some(Wait::DirtyLimit) => "for the dirty limit",
        Some(Wait::Barrier) => "for the others",
        Some(Wait::Time) => "asleep",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(name: &str, act: Act, wait: Option<Wait>) -> Actor {
        Actor { name: name.to_string(), group: 0, act, wait }
    }

    #[test]
    fn those_that_reclaim_come_first_and_idle_ones_not_at_all() {
        let direct = Act::Reclaims { by: Reclaimer::Direct, target: Some(1), priority: 9 };
        let actors = [
            actor("kswapd0", Act::Idle, None),
            actor("a-0", Act::Other("reads"), Some(Wait::Data)),
            actor("a-1", Act::Other("works"), None),
            actor("a-2", direct, Some(Wait::Throttled(Throttle::Writeback))),
            actor("a-3", Act::Other("writes"), Some(Wait::DirtyLimit)),
        ];
        let names: Vec<&str> = busy(&actors).iter().map(|actor| actor.name.as_str()).collect();
        assert_eq!(names, ["a-2", "a-3", "a-1", "a-0"]);
        assert_eq!(summary(&actors), "1 reclaim, 1 run, 2 wait, 1 idle or ended");
        let groups = ["/".to_string(), "/a".to_string()];
        assert_eq!(act(direct, &groups), "reclaims /a, prio 9");
        assert_eq!(wait(actors[3].wait), "throttled: writeback");
    }
}
