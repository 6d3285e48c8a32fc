//! Clients of the simulation: each begins sessions, makes one call in each, resumes where its process is gone, and checks what it gets.

use super::store::{Event, Message, WILL};
use super::{Exchange, KNOWN, RATE, Simulation, Step};

impl Simulation {
    pub(super) fn begin(&mut self, session: u32) {
        for next in session..(session + RATE).min(self.plan.sessions) {
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
        if session + RATE < self.plan.sessions {
            self.at(1, Step::Begin(session + RATE));
        }
    }

    pub(super) fn forget(&mut self, session: u32) {
        if let Some(known) = self.exchanges.remove(&session) {
            self.store.forget((session, known.stream));
        }
    }

    /// An event arrives on the connection that the call began with.
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

    /// The client takes an event, and checks it.
    pub(super) fn receive(&mut self, session: u32, event: Event) {
        let Some(known) = self.exchanges.get_mut(&session) else {
            return;
        };
        let (last, events) = (known.last, known.events);
        if event.data == WILL {
            let (server, begun) = (known.server.1, known.begun);
            if event.number <= last {
                return self.violation(format!(
                    "the end of session {session} has a number that its client knows"
                ));
            }
            // Who has just taken it for dead may do so for a moment more.
            let away = self.away.get(&server);
            if away.is_none_or(|until| begun > until + KNOWN) {
                self.violation(format!(
                    "process {server} lives, and session {session} got its last will"
                ));
            }
            return self.end(session, WILL, "lost");
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

    /// The client posts its answer to any process, which publishes it.
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

    /// A client whose process has gone resumes elsewhere.
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
