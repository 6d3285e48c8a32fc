//! Deterministic simulation of processes that share sessions, with a virtual clock, a virtual network and a model of
//! Redis. All random choices come from a seed.
//!
//! Clients start sessions, make one call per session on random processes, lose their connections and resume on other
//! processes. Processes are killed, or suspended for longer than their lease; Redis loses leases and events. The
//! simulation checks that every call ends once, no event is silently lost or repeated, no running process gets a last
//! will, and no answer is delivered twice.

mod clients;
mod processes;
pub mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use mcp_exact_tests_support::Rng;

use store::{Bus, ProcessId, Store};

/// Lease time of a process, in milliseconds.
const LEASE: u64 = 15_000;
/// Time for which a process caches whether another process is dead, in milliseconds.
const LIVENESS_CACHE_TIME: u64 = 500;
/// Interval at which a process reads the bus, in milliseconds.
const BUS_INTERVAL: u64 = 200;
/// Interval of random disturbances, in milliseconds.
const DISTURBANCE_INTERVAL: u64 = 100;
/// Time limit after which a call without an outcome is a violation, in milliseconds.
const OUTCOME_TIMEOUT: u64 = 600_000;
/// Number of sessions that start per millisecond.
const SESSIONS_PER_MILLISECOND: u32 = 1;

/// Deliberate fault that the checks must detect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A reader occasionally drops an event.
    LostEvent,
    /// A stream accepts events of a process that does not own it.
    NoFence,
    /// A process that was once considered dead is always considered dead.
    DeadForever,
    /// A stream ends with its last will although its client has received later events.
    EarlyWill,
    /// A message that was published twice is delivered twice.
    RepeatedMessage,
}

/// Configuration of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Number of processes.
    pub processes: usize,
    /// Number of sessions, each with one call.
    pub sessions: u32,
    /// Seed of all random choices.
    pub seed: u64,
    /// Fault to inject.
    pub fault: Option<Fault>,
}

/// Results of a simulation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of calls by outcome.
    pub ends: BTreeMap<&'static str, u64>,
    /// Descriptions of the first violations.
    pub violations: Vec<String>,
    /// Number of killed processes.
    pub killed: u64,
    /// Number of suspended processes.
    pub stopped: u64,
    /// Number of executed steps.
    pub steps: u64,
    /// Virtual time at the end of the simulation, in milliseconds.
    pub time: u64,
}

/// Simulated server process.
struct Process {
    /// Id of the process, which changes when it restarts.
    id: ProcessId,
    /// True if the process runs or is suspended, false if it was killed.
    is_up: bool,
    /// Time until which the process is suspended.
    stopped_until: u64,
    /// Time since which Redis has been reachable on the same connection.
    reached_since: u64,
    /// Results of earlier checks of other processes: the time of the check, and true if the process was dead.
    known: HashMap<ProcessId, (u64, bool)>,
    /// Number of the last message that was read from the bus.
    bus: u64,
    /// Number of the last message of each process that has published messages.
    senders: HashMap<ProcessId, u64>,
    /// Number of messages that the process has published.
    published: u64,
}

/// Session with its only call.
struct Exchange {
    /// Number of the call's stream.
    stream: u32,
    /// Start time of the call.
    begun: u64,
    /// Principal of the session.
    principal: u32,
    /// Number of events before the result.
    events: u64,
    /// True if the server sends a request to the client after the first event.
    asks: bool,
    /// Index and id of the process that runs the call.
    server: (usize, ProcessId),
    /// Number of the latest event that Redis has confirmed to this process.
    confirmed: u64,
    /// True if no process runs the call any more.
    is_served: bool,
    /// True if the call waits for the client's answer.
    is_waiting: bool,
    /// Number of answers that were delivered to the call.
    answers: u64,
    /// Number of the client's current connection.
    connection: u32,
    /// Index and id of the process that the client is connected to.
    connected: (usize, ProcessId),
    /// Number of the latest event that the client has received.
    last: u64,
    /// True if Redis has lost an event of the stream.
    is_damaged: bool,
    /// Outcome of the call, if it has one: the text of its last event.
    end: Option<u64>,
}

/// Step of the simulation. Processes are named by index and id, sessions and connections by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A process renews its lease.
    Renew(usize, ProcessId),
    /// A process reads the bus.
    ReadBus(usize, ProcessId),
    /// A killed process starts again with a new id.
    Restart(usize),
    /// A random disturbance happens.
    Disturb,
    /// The sessions of one millisecond start.
    Begin(u32),
    /// A client sends its call.
    Call(u32),
    /// The process of a call appends the next event.
    Append(u32),
    /// An event is received on a connection.
    Arrive(u32, u32, u64),
    /// A client answers the request of the server.
    Answer(u32),
    /// A client checks the process of its connection.
    Watch(u32, u32),
    /// A process reads the stream of another process for a connection.
    Follow(u32, u32),
}

/// State of a simulation.
struct Simulation {
    plan: Plan,
    rng: Rng,
    /// Virtual time, in milliseconds.
    now: u64,
    /// Number of the latest scheduled step, which orders steps of the same time.
    order: u64,
    /// Scheduled steps, with time and order.
    queue: BinaryHeap<Reverse<(u64, u64, Step)>>,
    store: Store,
    bus: Bus,
    processes: Vec<Process>,
    /// Id of the latest process.
    next_id: ProcessId,
    /// End of the latest outage of each process that was killed or suspended for about a lease; last wills of its
    /// earlier calls are correct.
    away: HashMap<ProcessId, u64>,
    exchanges: HashMap<u32, Exchange>,
    /// Number of calls without an outcome.
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
    /// Schedules a step after a delay in milliseconds.
    fn at(&mut self, delay: u64, step: Step) {
        self.order += 1;
        self.queue
            .push(Reverse((self.now + delay, self.order, step)));
    }

    /// Returns a random network latency in milliseconds.
    fn latency(&mut self) -> u64 {
        1 + self.rng.below(20) as u64
    }

    /// Records a violation.
    fn violation(&mut self, text: String) {
        if self.report.violations.len() < 100 {
            self.report.violations.push(text);
        }
    }

    /// Returns a process with a new id.
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

    /// Schedules the periodic steps of a process.
    fn start(&mut self, index: usize) {
        let id = self.processes[index].id;
        self.at(0, Step::Renew(index, id));
        self.at(BUS_INTERVAL, Step::ReadBus(index, id));
    }

    /// Runs the scheduled steps until every call has an outcome.
    fn run(&mut self) {
        let end = u64::from(self.plan.sessions / SESSIONS_PER_MILLISECOND) + OUTCOME_TIMEOUT;
        while self.left > 0 {
            let Some(Reverse((now, _, step))) = self.queue.pop() else {
                break;
            };
            if now > end {
                break;
            }
            self.now = now;
            self.report.steps += 1;
            self.run_step(step);
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

    /// Runs a step.
    fn run_step(&mut self, step: Step) {
        match step {
            Step::Renew(index, id) if self.lives(index, id, step) => {
                self.store.renew(id, self.now + LEASE);
                self.at(LEASE / 3, step);
            }
            Step::ReadBus(index, id) if self.lives(index, id, step) => {
                self.read_bus(index);
                self.at(BUS_INTERVAL, step);
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

    /// Returns true if the process runs under this id. The step of a suspended process is delayed until the process
    /// continues.
    fn lives(&mut self, index: usize, id: ProcessId, step: Step) -> bool {
        let process = &self.processes[index];
        let (lives, until) = (process.is_up && process.id == id, process.stopped_until);
        if lives && until > self.now {
            self.at(until - self.now, step);
            return false;
        }
        lives
    }

    /// Chooses a random process that accepts connections, as a load balancer does.
    fn balance(&mut self) -> (usize, ProcessId) {
        loop {
            let index = self.rng.below(self.processes.len());
            let process = &self.processes[index];
            if process.is_up && process.stopped_until <= self.now {
                return (index, process.id);
            }
        }
    }

    /// Lets Redis lose leases or events, or kills or suspends a process, at random; schedules the next disturbance.
    fn disturb(&mut self) {
        self.at(DISTURBANCE_INTERVAL, Step::Disturb);
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
                    .saturating_mul(SESSIONS_PER_MILLISECOND);
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
                self.away.insert(process.id, u64::MAX - LIVENESS_CACHE_TIME);
                let pause = 200 + self.rng.below(3000) as u64;
                self.at(pause, Step::Restart(index));
            }
            600.. if !is_busy => {
                self.report.stopped += 1;
                let pause = self.rng.below(3 * LEASE as usize) as u64;
                let process = &mut self.processes[index];
                process.stopped_until = self.now + pause;
                // The last renewal of the lease may be up to a third of the lease time ago.
                if pause > LEASE / 2 {
                    self.away.insert(process.id, process.stopped_until);
                }
            }
            _ => {}
        }
    }
}
