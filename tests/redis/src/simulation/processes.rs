//! Server processes of the simulation: they store the events of calls, read the bus, and forward streams of other
//! processes.

use super::store::{Event, LAST_WILL, ProcessId, ReadResult, StreamKey};
use super::{Fault, LEASE, LIVENESS_CACHE_TIME, Simulation, Step};

impl Simulation {
    /// Starts a call on a process, which loads the session record and begins the stream.
    pub(super) fn call(&mut self, session: u32) {
        let server = self.balance();
        let known = &self.exchanges[&session];
        let (principal, key) = (known.principal, (session, known.stream));
        if self
            .store
            .load(session)
            .is_none_or(|(_, owner)| owner != principal)
        {
            self.violation(format!("session {session} is not that of its principal"));
        }
        self.change_session(session, principal);
        if !self.store.begin(key, server.1) {
            self.violation(format!("the stream of session {session} is used twice"));
        }
        if let Some(known) = self.exchanges.get_mut(&session) {
            known.begun = self.now;
            known.server = server;
            known.connected = server;
        }
        let latency = self.latency();
        self.at(latency, Step::Append(session));
        self.at(1000, Step::Watch(session, 0));
    }

    /// Lets two processes save a session concurrently; occasionally ends the session.
    pub(super) fn change_session(&mut self, session: u32, principal: u32) {
        if self.rng.below(20) == 0 {
            let both = [(); 2].map(|()| self.store.save(session, 2, principal));
            let merged = self.store.save(session, 3, principal);
            if both != [true, false] || !merged {
                self.violation(format!("session {session} was saved twice as one version"));
            }
        }
        if self.rng.below(50) == 0 {
            self.store.end(session);
            if self.store.save(session, 4, principal) {
                self.violation(format!("session {session} was saved after its end"));
            }
        }
    }

    /// Lets the process of a call append and send its next event.
    pub(super) fn append(&mut self, session: u32) {
        let Some(known) = self.exchanges.get(&session) else {
            return;
        };
        let ((index, id), key, confirmed) =
            (known.server, (session, known.stream), known.confirmed);
        let (is_last, number) = (confirmed == known.events, confirmed + 1);
        if !self.lives(index, id, Step::Append(session)) {
            let process = &self.processes[index];
            if process.id != id || !process.is_up {
                self.mark_abandoned(session);
            }
            return;
        }
        let data = if is_last { u64::from(session) } else { number };
        let mut is_taken = self
            .store
            .append(key, id, confirmed, (number, is_last, data));
        if self.rng.below(50) == 0 {
            // The reply was lost, and the process repeats the script.
            is_taken = self
                .store
                .append(key, id, confirmed, (number, is_last, data));
        }
        if !is_taken {
            return self.mark_abandoned(session);
        }
        let end = self.exchanges[&session].end;
        if end == Some(LAST_WILL) {
            self.violation(format!(
                "the stream of session {session} goes on behind its end"
            ));
        }
        let latency = self.latency();
        self.at(latency, Step::Arrive(session, 0, number));
        let pause = self.random_pause();
        let Some(known) = self.exchanges.get_mut(&session) else {
            return;
        };
        known.confirmed = number;
        if is_last {
            self.mark_abandoned(session);
        } else if known.asks && number == 1 {
            known.is_waiting = true;
        } else {
            self.at(latency + pause, Step::Append(session));
        }
    }

    /// Returns the random pause of a tool between two events, in milliseconds.
    pub(super) fn random_pause(&mut self) -> u64 {
        match self.rng.below(10) {
            0 => self.rng.below(5000) as u64,
            _ => self.rng.below(100) as u64,
        }
    }

    /// Records that no process runs the call any more.
    pub(super) fn mark_abandoned(&mut self, session: u32) {
        if let Some(known) = self.exchanges.get_mut(&session) {
            known.is_served = true;
            if known.end.is_some() {
                self.forget(session);
            }
        }
    }

    /// Reads the messages of the bus, and delivers their answers to the calls of the process.
    pub(super) fn read_bus(&mut self, index: usize) {
        let (mut messages, has_gap) = {
            let (messages, has_gap) = self.bus.read(self.processes[index].bus);
            (messages.copied().collect::<Vec<_>>(), has_gap)
        };
        if has_gap {
            self.violation(format!("process {index} has lost its place on the bus"));
        }
        let process = &mut self.processes[index];
        process.bus = self.bus.last();
        if self.plan.fault != Some(Fault::RepeatedMessage) {
            messages.retain(|message| {
                let known = process.senders.entry(message.process).or_default();
                let is_new = message.number > *known;
                *known = message.number.max(*known);
                is_new
            });
        }
        let id = process.id;
        for message in messages {
            let (session, token) = message.answer;
            let Some(known) = self.exchanges.get_mut(&session) else {
                continue;
            };
            if known.server != (index, id) {
                continue;
            }
            known.answers += 1;
            let is_wanted = std::mem::take(&mut known.is_waiting);
            if known.answers > 1 || token != u64::from(session) {
                self.violation(format!("session {session}: an answer was delivered twice"));
            }
            if is_wanted {
                let latency = self.latency();
                self.at(latency, Step::Append(session));
            }
        }
    }

    /// Lets a process read events of another process for a client.
    pub(super) fn follow(&mut self, session: u32, connection: u32) {
        let Some(known) = self.exchanges.get(&session) else {
            return;
        };
        if known.connection != connection || known.end.is_some() {
            return;
        }
        let ((index, id), key, last) = (known.connected, (session, known.stream), known.last);
        let is_damaged = known.is_damaged;
        if !self.lives(index, id, Step::Follow(session, connection)) {
            return;
        }
        match self.store.read(key, last) {
            ReadResult::Events(events, owner) => self.forward_events(session, key, events, owner),
            _ if is_damaged => self.end(session, 0, "events lost"),
            other => self.violation(format!("session {session} cannot be resumed: {other:?}")),
        }
        if self
            .exchanges
            .get(&session)
            .is_some_and(|known| known.end.is_none())
        {
            let pause = 20 + self.rng.below(480) as u64;
            self.at(pause, Step::Follow(session, connection));
        }
    }

    /// Forwards events of another process to the client; ends the stream if there are no events and the other process
    /// is dead.
    pub(super) fn forward_events(
        &mut self,
        session: u32,
        key: StreamKey,
        mut events: Vec<Event>,
        owner: Option<ProcessId>,
    ) {
        let known = &self.exchanges[&session];
        let (index, last) = (known.connected.0, known.last);
        if self.plan.fault == Some(Fault::LostEvent) && events.len() > 1 && self.rng.below(5) == 0 {
            events.remove(0);
        }
        if events.is_empty()
            && let Some(owner) = owner
            && self.is_dead(index, owner)
        {
            let is_early = self.plan.fault == Some(Fault::EarlyWill);
            self.store
                .abandon(key, owner, if is_early { 0 } else { last });
        }
        for event in events {
            self.receive(session, event);
        }
    }

    /// Returns true if the process with this index considers another process dead.
    pub(super) fn is_dead(&mut self, index: usize, other: ProcessId) -> bool {
        let now = self.now;
        let lives = self.store.has_lease(other, now);
        let process = &mut self.processes[index];
        if process.id == other || now - process.reached_since < LEASE {
            return false;
        }
        if let Some((at, is_dead)) = process.known.get(&other)
            && (now - at < LIVENESS_CACHE_TIME
                || (*is_dead && self.plan.fault == Some(Fault::DeadForever)))
        {
            return *is_dead;
        }
        process.known.insert(other, (now, !lives));
        !lives
    }
}
