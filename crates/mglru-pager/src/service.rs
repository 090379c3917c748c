//! An arena that is served: by an engine, by its handlers, and by the policy thread.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::arena::{Arena, Backing, ForHandler, ForOwner, Plan};
use crate::engine::{Engine, FaultEngine, OneThread, Threads};
use crate::error::PagerError;
use crate::handler;
use crate::policy::{Served, Wanted};
use crate::running::Running;
use crate::sigbus::Sigbus;

/// Asks for an arena, with the engine that suits its backing.
pub fn wanted(running: &Running, plan: Plan) -> Wanted {
    let engine = engine_of(&plan.backing, running.faults());
    let nr_handlers = engine.nr_handlers();
    let buffers = handler::buffer_bytes(&plan.backing, nr_handlers);
    Wanted { plan, engine, nr_handlers, buffers }
}

fn engine_of(backing: &Backing, (faults, kept_bits): (FaultEngine, bool)) -> Arc<dyn Engine> {
    match (backing, faults) {
        (Backing::Heap(_), _) => Arc::new(OneThread { kept_bits }),
        (_, FaultEngine::Thread) => Arc::new(Threads),
        (_, FaultEngine::Sigbus) => Arc::new(Sigbus::default()),
    }
}

/// Holds an arena with its handlers at work.
pub struct Service {
    running: Arc<Running>,
    owner: ForOwner,
    engine: Arc<dyn Engine>,
    shared: Arc<handler::Shared>,
    handlers: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts to serve an arena that the policy thread knows.
    ///
    /// # Errors
    /// A thread cannot be started, or there are too many arenas.
    pub fn start(
        running: &Arc<Running>,
        Served { owner, handlers }: Served,
        engine: Arc<dyn Engine>,
    ) -> Result<Self, PagerError> {
        let (running, shared) = (running.clone(), Arc::new(handler::Shared::new(engine.clone())));
        let mut service = Self { running, owner, engine, shared, handlers: Vec::new() };
        match service.begin(handlers) {
            Ok(()) => Ok(service),
            Err(error) => {
                service.end();
                Err(error)
            }
        }
    }

    fn begin(&mut self, ends: Vec<ForHandler>) -> Result<(), PagerError> {
        for end in ends {
            self.handlers.push(handler::start(end, self.shared.clone())?);
        }
        self.engine.begin(self.arena())
    }

    /// Returns the arena.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.owner
    }

    /// Returns the owner's end of the arena.
    pub fn owner(&self) -> &ForOwner {
        &self.owner
    }

    /// Returns the pager that the arena is of.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Makes pages present.
    ///
    /// # Errors
    /// One of them is lost.
    pub fn populate(&self, first: u32, nr_pages: u32) -> io::Result<()> {
        self.engine.populate(self.arena(), first, nr_pages)
    }

    /// Ends the handlers and takes the arena away.
    pub fn end(&mut self) {
        self.engine.end();
        self.shared.close();
        self.arena().ring_handlers();
        // A handler that panicked has said so.
        self.handlers.drain(..).for_each(|handler| drop(handler.join()));
        let id = self.arena().id();
        let _ = self.running.shared().call(move |policy| policy.detach(id));
    }
}
