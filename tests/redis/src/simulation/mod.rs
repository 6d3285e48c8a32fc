//! Deterministic simulation of processes that share sessions: virtual clock, virtual network, a model of Redis. A seed decides everything.
//!
//! Clients begin sessions, make one call each on any process, lose their connections and resume on other processes. Processes are
//! killed, stopped for longer than their lease and go on; Redis forgets leases and loses events. Each end is checked: every call
//! ends once, no event is lost or comes twice without a word, no process that lives gets a last will, no answer is delivered twice.

mod clients;
mod processes;
pub mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use mcp_exact_tests_support::Rng;

use store::{Bus, ProcessId, Store};

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
}
