//! Numbers for folders and files: a path keeps its number.

use std::collections::HashMap;

use mglru_pager::GroupFile;

/// Names a group, or a file of it.
#[derive(Clone)]
pub struct Node {
    /// Holds the group's path.
    pub group: String,
    /// Names the file; none: it is the group.
    pub file: Option<&'static GroupFile>,
}

impl Node {
    fn key(&self) -> (String, &'static str) {
        (self.group.clone(), self.file.map_or("", |file| file.name))
    }
}

/// Holds all nodes that were ever asked for. The root is number 1.
pub struct Nodes {
    nodes: Vec<Node>,
    numbers: HashMap<(String, &'static str), u64>,
}

impl Default for Nodes {
    fn default() -> Self {
        let mut nodes = Self { nodes: Vec::new(), numbers: HashMap::new() };
        nodes.number(Node { group: "/".into(), file: None });
        nodes
    }
}

impl Nodes {
    /// Returns the number of a node.
    pub fn number(&mut self, node: Node) -> u64 {
        let next = self.nodes.len() as u64 + 1;
        let number = *self.numbers.entry(node.key()).or_insert(next);
        if number == next {
            self.nodes.push(node);
        }
        number
    }

    /// Returns the node of a number.
    pub fn get(&self, number: u64) -> Option<&Node> {
        self.nodes.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_number() {
        let mut nodes = Nodes::default();
        let group = |path: &str| Node { group: path.into(), file: None };
        let file = mglru_pager::files().first();
        let numbers = [
            nodes.number(group("/")),
            nodes.number(group("/a")),
            nodes.number(Node { group: "/a".into(), file }),
            nodes.number(group("/a")),
        ];
        assert_eq!(numbers, [1, 2, 3, 2]);
        assert_eq!(nodes.get(2).unwrap().group, "/a");
        assert!(nodes.get(3).unwrap().file.is_some());
        assert!(nodes.get(0).is_none() && nodes.get(4).is_none());
    }
}
