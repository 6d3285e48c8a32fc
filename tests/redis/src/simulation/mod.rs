//! Deterministic simulation of processes that share sessions: virtual clock, virtual network, a model of Redis. A seed decides everything.
//!
//! Clients begin sessions, make one call each on any process, lose their connections and resume on other processes. Processes are
//! killed, stopped for longer than their lease and go on; Redis forgets leases and loses events. Each end is checked: every call
//! ends once, no event is lost or comes twice without a word, no process that lives gets a last will, no answer is delivered twice.

pub mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use mcp_exact_tests_support::Rng;

use store::{Bus, Event, Message, ProcessId, Read, Store, StreamKey, WILL};

/// Lease of a process in milliseconds.
const LEASE: u64 = 15_000;
/// Time for which a process keeps the answer whether another one lives.
const KNOWN: u64 = 500;
/// Interval at which a process reads the bus.
const BUS: u64 = 200;
/// Interval of killed and stopped processes.
const DISTURBANCE: u64 = 100;
/// Time after which a call without an end is silence.
const PATIENCE: u64 = 600_000;
/// Sessions that begin in a millisecond.
const RATE: u32 = 1;

/// Fault that the checks have to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A reader drops an event now and then.
    LostEvent,
    /// A stream takes events of a process that does not own it.
    NoFence,
    /// A process that seemed dead once is dead for ever.
    DeadForever,
    /// The last will of a stream does not come behind what its client knows.
    EarlyWill,
    /// A message that was published twice is delivered twice.
    RepeatedMessage,
}

/// Size of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub processes: usize,
    pub sessions: u32,
    pub seed: u64,
    pub fault: Option<Fault>,
}

/// What happened.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub ends: BTreeMap<&'static str, u64>,
    pub violations: Vec<String>,
    pub killed: u64,
    pub stopped: u64,
    pub steps: u64,
    /// Virtual time of the end in milliseconds.
    pub time: u64,
}

struct Process {
    id: ProcessId,
    is_up: bool,
    stopped_until: u64,
    /// Time since which Redis was reached on one connection.
    reached_since: u64,
    known: HashMap<ProcessId, (u64, bool)>,
    bus: u64,
    senders: HashMap<ProcessId, u64>,
    published: u64,
}

/// A session with its only call.
struct Exchange {
    stream: u32,
    /// Time at which the call has begun.
    begun: u64,
    principal: u32,
    /// Events before the result.
    events: u64,
    /// True if the server asks the client after the first event.
    asks: bool,
    /// Process that runs the call.
    server: (usize, ProcessId),
    /// Number of the latest event that Redis has confirmed to that process.
    confirmed: u64,
    is_served: bool,
    is_waiting: bool,
    answers: u64,
    /// Number of the client's connection, and the process at its other end.
    connection: u32,
    connected: (usize, ProcessId),
    /// Number of the latest event that the client has.
    last: u64,
    /// True if Redis has lost an event of the stream.
    is_damaged: bool,
    end: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Renew(usize, ProcessId),
    ReadBus(usize, ProcessId),
    Restart(usize),
    Disturb,
    Begin(u32),
    Call(u32),
    Append(u32),
    Arrive(u32, u32, u64),
    Answer(u32),
    Watch(u32, u32),
    Follow(u32, u32),
}

struct Simulation {
    plan: Plan,
    rng: Rng,
    now: u64,
    order: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Step)>>,
    store: Store,
    bus: Bus,
    processes: Vec<Process>,
    next_id: ProcessId,
    /// Processes that were killed, or stopped for about a lease, until when: last wills of their calls from before are right.
    away: HashMap<ProcessId, u64>,
    exchanges: HashMap<u32, Exchange>,
    left: u32,
    report: Report,
}

/// Runs a simulation to its end.
pub fn run(plan: Plan) -> Report {
    let mut simulation = Simulation {
        plan,
        rng: Rng::new(plan.seed),
        now: 0,
        order: 0,
        queue: BinaryHeap::new(),
        store: Store::default(),
        bus: Bus::new(10_000),
        processes: Vec::new(),
        next_id: 0,
        away: HashMap::new(),
        exchanges: HashMap::new(),
        left: plan.sessions,
        report: Report::default(),
    };
    simulation.store.is_open = plan.fault == Some(Fault::NoFence);
    for index in 0..plan.processes {
        let process = simulation.new_process();
        simulation.processes.push(process);
        simulation.start(index);
    }
    simulation.at(LEASE, Step::Disturb);
    simulation.at(0, Step::Begin(0));
    simulation.run();
    simulation.report
}

impl Simulation {
    fn at(&mut self, delay: u64, step: Step) {
        self.order += 1;
        self.queue
            .push(Reverse((self.now + delay, self.order, step)));
    }

    fn latency(&mut self) -> u64 {
        1 + self.rng.below(20) as u64
    }

    fn violation(&mut self, text: String) {
        if self.report.violations.len() < 100 {
            self.report.violations.push(text);
        }
    }

    fn new_process(&mut self) -> Process {
        self.next_id += 1;
        Process {
            id: self.next_id,
            is_up: true,
            stopped_until: 0,
            reached_since: self.now,
            known: HashMap::new(),
            bus: self.bus.last(),
            senders: HashMap::new(),
            published: 0,
        }
    }

    fn start(&mut self, index: usize) {
        let id = self.processes[index].id;
        self.at(0, Step::Renew(index, id));
        self.at(BUS, Step::ReadBus(index, id));
    }

    fn run(&mut self) {
        let end = u64::from(self.plan.sessions / RATE) + PATIENCE;
        while self.left > 0 {
            let Some(Reverse((now, _, step))) = self.queue.pop() else {
                break;
            };
            if now > end {
                break;
            }
            self.now = now;
            self.report.steps += 1;
            self.take(step);
        }
        self.report.time = self.now;
        let silent: Vec<u32> = self
            .exchanges
            .iter()
            .filter(|(_, known)| known.end.is_none())
            .map(|(session, _)| *session)
            .collect();
        if let Some(least) = silent.iter().min() {
            let count = silent.len();
            self.violation(format!(
                "{count} calls have no end, such as that of session {least}"
            ));
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Renew(index, id) if self.lives(index, id, step) => {
                self.store.renew(id, self.now + LEASE);
                self.at(LEASE / 3, step);
            }
            Step::ReadBus(index, id) if self.lives(index, id, step) => {
                self.read_bus(index);
                self.at(BUS, step);
            }
            Step::Restart(index) => {
                self.processes[index] = self.new_process();
                self.start(index);
            }
            Step::Disturb => self.disturb(),
            Step::Begin(session) => self.begin(session),
            Step::Call(session) => self.call(session),
            Step::Append(session) => self.append(session),
            Step::Arrive(session, connection, number) => self.arrive(session, connection, number),
            Step::Answer(session) => self.answer(session),
            Step::Watch(session, connection) => self.watch(session, connection),
            Step::Follow(session, connection) => self.follow(session, connection),
            Step::Renew(..) | Step::ReadBus(..) => {}
        }
    }

    /// Returns true if the process runs under this id. What a stopped process would do, it does when it goes on.
    fn lives(&mut self, index: usize, id: ProcessId, step: Step) -> bool {
        let process = &self.processes[index];
        let (lives, until) = (process.is_up && process.id == id, process.stopped_until);
        if lives && until > self.now {
            self.at(until - self.now, step);
            return false;
        }
        lives
    }

    /// Chooses a process as the balancer does: one that takes connections.
    fn balance(&mut self) -> (usize, ProcessId) {
        loop {
            let index = self.rng.below(self.processes.len());
            let process = &self.processes[index];
            if process.is_up && process.stopped_until <= self.now {
                return (index, process.id);
            }
        }
    }

    fn disturb(&mut self) {
        self.at(DISTURBANCE, Step::Disturb);
        let index = self.rng.below(self.processes.len());
        let is_away = |process: &Process| !process.is_up || process.stopped_until > self.now;
        let away = self
            .processes
            .iter()
            .filter(|process| is_away(process))
            .count();
        let is_busy = is_away(&self.processes[index]) || away * 4 > self.processes.len();
        match self.rng.below(1000) {
            0..=1 => {
                // Redis starts again without leases, and every process notices a new connection.
                self.store.lose_leases();
                for process in &mut self.processes {
                    process.reached_since = self.now;
                }
            }
            2..=39 => {
                // A failover loses the latest events of some calls.
                let newest = u32::try_from(self.now)
                    .unwrap_or(u32::MAX)
                    .saturating_mul(RATE);
                for session in newest.saturating_sub(1000)..newest {
                    if let Some(known) = self.exchanges.get_mut(&session)
                        && self.rng.below(4) == 0
                        && self.store.lose_event((session, known.stream))
                    {
                        known.is_damaged = true;
                    }
                }
            }
            40..=599 if !is_busy => {
                self.report.killed += 1;
                let process = &mut self.processes[index];
                process.is_up = false;
                self.away.insert(process.id, u64::MAX - KNOWN);
                let pause = 200 + self.rng.below(3000) as u64;
                self.at(pause, Step::Restart(index));
            }
            600.. if !is_busy => {
                self.report.stopped += 1;
                let pause = self.rng.below(3 * LEASE as usize) as u64;
                let process = &mut self.processes[index];
                process.stopped_until = self.now + pause;
                // Its last renewal is up to a third of a lease old.
                if pause > LEASE / 2 {
                    self.away.insert(process.id, process.stopped_until);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, session: u32) {
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

    /// The call reaches a process that has not begun the session: it loads the record and begins the stream.
    fn call(&mut self, session: u32) {
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

    /// Two processes save what the client has changed at the same time; now and then it ends the session too.
    fn change_session(&mut self, session: u32, principal: u32) {
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

    /// The process of a call appends its next event, and sends it.
    fn append(&mut self, session: u32) {
        let Some(known) = self.exchanges.get(&session) else {
            return;
        };
        let ((index, id), key, confirmed) =
            (known.server, (session, known.stream), known.confirmed);
        let (is_last, number) = (confirmed == known.events, confirmed + 1);
        if !self.lives(index, id, Step::Append(session)) {
            let process = &self.processes[index];
            if process.id != id || !process.is_up {
                self.served(session);
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
            return self.served(session);
        }
        let end = self.exchanges[&session].end;
        if end == Some(WILL) {
            self.violation(format!(
                "the stream of session {session} goes on behind its end"
            ));
        }
        let latency = self.latency();
        self.at(latency, Step::Arrive(session, 0, number));
        let pause = self.think();
        let Some(known) = self.exchanges.get_mut(&session) else {
            return;
        };
        known.confirmed = number;
        if is_last {
            self.served(session);
        } else if known.asks && number == 1 {
            known.is_waiting = true;
        } else {
            self.at(latency + pause, Step::Append(session));
        }
    }

    /// Time that a tool works between two events.
    fn think(&mut self) -> u64 {
        match self.rng.below(10) {
            0 => self.rng.below(5000) as u64,
            _ => self.rng.below(100) as u64,
        }
    }

    /// Notes that the process of a call does nothing more for it.
    fn served(&mut self, session: u32) {
        if let Some(known) = self.exchanges.get_mut(&session) {
            known.is_served = true;
            if known.end.is_some() {
                self.forget(session);
            }
        }
    }

    fn forget(&mut self, session: u32) {
        if let Some(known) = self.exchanges.remove(&session) {
            self.store.forget((session, known.stream));
        }
    }

    /// An event arrives on the connection that the call began with.
    fn arrive(&mut self, session: u32, connection: u32, number: u64) {
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
    fn receive(&mut self, session: u32, event: Event) {
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

    fn end(&mut self, session: u32, end: u64, name: &'static str) {
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
    fn answer(&mut self, session: u32) {
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

    fn read_bus(&mut self, index: usize) {
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

    /// A client whose process has gone resumes elsewhere.
    fn watch(&mut self, session: u32, connection: u32) {
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

    fn resume(&mut self, session: u32) {
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

    /// A process reads for a client what another one has written.
    fn follow(&mut self, session: u32, connection: u32) {
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
            Read::Events(events, owner) => self.pass_on(session, key, events, owner),
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

    fn pass_on(
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

    /// Returns true if a process takes another one for dead.
    fn is_dead(&mut self, index: usize, other: ProcessId) -> bool {
        let now = self.now;
        let lives = self.store.has_lease(other, now);
        let process = &mut self.processes[index];
        if process.id == other || now - process.reached_since < LEASE {
            return false;
        }
        if let Some((at, is_dead)) = process.known.get(&other)
            && (now - at < KNOWN || (*is_dead && self.plan.fault == Some(Fault::DeadForever)))
        {
            return *is_dead;
        }
        process.known.insert(other, (now, !lives));
        !lives
    }
}
