//! Description of the machine for the pages with results: processor, number of cores and operating system, without the
//! host name.

/// Returns the name of the processor, the number of its cores and the name of the operating system.
pub fn name() -> String {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = about
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    // Benchmarks bind themselves to one core at times; the machine still has the others.
    let listed = about.lines().filter(|line| line.starts_with("processor"));
    let count = match listed.count() {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    format!("{name}, {count} cores, {}", std::env::consts::OS)
}
