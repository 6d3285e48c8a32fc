//! Clients of the simulation: each starts sessions, makes one call in each, resumes its stream on other processes, and
//! checks all received events.

use super::store::{Event, LAST_WILL, Message};
use super::{Exchange, LIVENESS_CACHE_TIME, SESSIONS_PER_MILLISECOND, Simulation, Step};

impl Simulation {
    /// Starts the sessions of one millisecond from the number `session` on, each with its call.
    pub(super) fn begin(&mut self, session: u32) {
        for next in session..(session + SESSIONS_PER_MILLISECOND).min(self.plan.sessions) {
            let principal = self.rng.below(1000) as u32;
            self.store.save(next, 1, principal);
            let exchange = Exchange {
                stream: self.rng.next_u64() as u32,
                begun: self.now,
                principal,
                events: 1 + self.rng.below(4) as u64,
                asks: self.rng.below(100) == 0,
                server: (0, 0),
                confirmed: 0,
                is_served: false,
                is_waiting: false,
                answers: 0,
                connection: 0,
                connected: (0, 0),
                last: 0,
                is_damaged: false,
                end: None,
            };
            self.exchanges.insert(next, exchange);
            let latency = self.latency();
            self.at(latency, Step::Call(next));
        }
        if session + SESSIONS_PER_MILLISECOND < self.plan.sessions {
            self.at(1, Step::Begin(session + SESSIONS_PER_MILLISECOND));
        }
    }

    /// Removes a session and its stream.
    pub(super) fn forget(&mut self, session: u32) {
        if let Some(known) = self.exchanges.remove(&session) {
            self.store.forget((session, known.stream));
        }
    }

    /// Delivers an event on the original connection of the call.
    pub(super) fn arrive(&mut self, session: u32, connection: u32, number: u64) {
        let Some(known) = self.exchanges.get(&session) else {
            return;
        };
        if known.connection != connection || known.end.is_some() {
            return;
        }
        if self.rng.below(100) < 5 {
            return self.resume(session);
        }
        let is_last = number == known.events + 1;
        let data = if is_last { u64::from(session) } else { number };
        let event = Event {
            number,
            after: number - 1,
            is_last,
            data,
        };
        self.receive(session, event);
    }

    /// Checks an event that the client has received.
    pub(super) fn receive(&mut self, session: u32, event: Event) {
        let Some(known) = self.exchanges.get_mut(&session) else {
            return;
        };
        let (last, events) = (known.last, known.events);
        if event.data == LAST_WILL {
            let (server, begun) = (known.server.1, known.begun);
            if event.number <= last {
                return self.violation(format!(
                    "the end of session {session} has a number that its client knows"
                ));
            }
            // A process that has just found the other process dead may use this cached result for a moment.
            let away = self.away.get(&server);
            if away.is_none_or(|until| begun > until + LIVENESS_CACHE_TIME) {
                self.violation(format!(
                    "process {server} lives, and session {session} got its last will"
                ));
            }
            return self.end(session, LAST_WILL, "lost");
        }
        if event.number != last + 1 {
            let number = event.number;
            return self.violation(format!(
                "session {session}: event {number} comes after {last}"
            ));
        }
        known.last = event.number;
        let asks = known.asks && event.number == 1;
        if event.is_last {
            if event.data != u64::from(session) || event.number != events + 1 {
                self.violation(format!("session {session} has the result of another call"));
            }
            self.end(session, event.data, "result");
        } else if asks {
            let latency = self.latency();
            self.at(latency, Step::Answer(session));
        }
    }

    /// Records the outcome of the call of a session.
    pub(super) fn end(&mut self, session: u32, end: u64, name: &'static str) {
        let Some(known) = self.exchanges.get_mut(&session) else {
            return;
        };
        if known.end.replace(end).is_some() {
            return self.violation(format!("the call of session {session} has two ends"));
        }
        let is_served = known.is_served;
        *self.report.ends.entry(name).or_default() += 1;
        self.left -= 1;
        if is_served {
            self.forget(session);
        }
    }

    /// Posts the client's answer to a random process, which publishes it on the bus.
    pub(super) fn answer(&mut self, session: u32) {
        let (index, id) = self.balance();
        let process = &mut self.processes[index];
        process.published += 1;
        let message = Message {
            process: id,
            number: process.published,
            answer: (session, u64::from(session)),
        };
        self.bus.publish(message);
        if self.rng.below(20) == 0 {
            // The reply was lost, and the process publishes it again.
            self.bus.publish(message);
        }
    }

    /// Resumes the stream of a client if the process of its connection has died or is suspended; otherwise checks again
    /// later.
    pub(super) fn watch(&mut self, session: u32, connection: u32) {
        let Some(known) = self.exchanges.get(&session) else {
            return;
        };
        if known.connection != connection || known.end.is_some() {
            return;
        }
        let (index, id) = known.connected;
        let process = &self.processes[index];
        let is_gone = process.id != id || !process.is_up || process.stopped_until > self.now;
        if is_gone {
            self.resume(session);
        } else {
            self.at(1000, Step::Watch(session, connection));
        }
    }

    /// Connects a client to a random process, which continues its stream.
    pub(super) fn resume(&mut self, session: u32) {
        let connected = self.balance();
        let Some(known) = self.exchanges.get_mut(&session) else {
            return;
        };
        known.connection += 1;
        known.connected = connected;
        let connection = known.connection;
        let latency = self.latency();
        self.at(latency, Step::Follow(session, connection));
        self.at(1000, Step::Watch(session, connection));
    }
}
