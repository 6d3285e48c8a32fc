// Runs a program for WASI preview 1 in a browser, with arguments and standard streams, a clock and random numbers.
// Every other function of WASI fails with `ENOSYS`: the program has no files and no network.

const BAD_DESCRIPTOR = 8;
const NOT_SUPPORTED = 52;

class Exit extends Error {
  constructor(code) {
    super(`exit code ${code}`);
    this.code = code;
  }
}

/** Runs a compiled module to its end. Returns its exit code and the texts on standard output and standard error. */
export function run(module, args, input) {
  const encoder = new TextEncoder();
  const words = args.map(word => encoder.encode(`${word}\0`));
  const output = { 1: [], 2: [] };
  let unread = encoder.encode(input);
  let memory;
  const view = () => new DataView(memory.buffer);
  const bytes = (start, length) => new Uint8Array(memory.buffer, start, length);

  /** Calls `use` with each buffer of a list; it returns the number of bytes that it took. Stores their sum at `total`. */
  const each = (buffers, count, total, use) => {
    let sum = 0;
    for (let index = 0; index < count; index += 1) {
      const at = buffers + 8 * index;
      sum += use(bytes(view().getUint32(at, true), view().getUint32(at + 4, true)));
    }
    view().setUint32(total, sum, true);
    return 0;
  };

  const functions = {
    args_sizes_get(count, size) {
      view().setUint32(count, words.length, true);
      view().setUint32(size, words.reduce((sum, word) => sum + word.length, 0), true);
      return 0;
    },
    args_get(pointers, buffer) {
      let at = buffer;
      words.forEach((word, index) => {
        view().setUint32(pointers + 4 * index, at, true);
        bytes(at, word.length).set(word);
        at += word.length;
      });
      return 0;
    },
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    clock_time_get(clock, _precision, result) {
      const milliseconds = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(result, BigInt(Math.round(milliseconds * 1e6)), true);
      return 0;
    },
    random_get(buffer, length) {
      // One call fills 65,536 bytes at most.
      for (let done = 0; done < length; done += 65536) {
        crypto.getRandomValues(bytes(buffer + done, Math.min(65536, length - done)));
      }
      return 0;
    },
    fd_fdstat_get(descriptor, result) {
      if (descriptor > 2) return BAD_DESCRIPTOR;
      // Of unknown type, so no terminal.
      bytes(result, 24).fill(0);
      return 0;
    },
    fd_prestat_get: () => BAD_DESCRIPTOR,
    fd_read(descriptor, buffers, count, total) {
      if (descriptor !== 0) return BAD_DESCRIPTOR;
      return each(buffers, count, total, buffer => {
        const part = unread.subarray(0, buffer.length);
        buffer.set(part);
        unread = unread.subarray(part.length);
        return part.length;
      });
    },
    fd_write(descriptor, buffers, count, total) {
      const parts = output[descriptor];
      if (parts === undefined) return BAD_DESCRIPTOR;
      return each(buffers, count, total, buffer => {
        parts.push(buffer.slice());
        return buffer.length;
      });
    },
    proc_exit(code) {
      throw new Exit(code);
    },
  };

  const imports = {};
  for (const { module: space, name } of WebAssembly.Module.imports(module)) {
    imports[space] ??= {};
    imports[space][name] = functions[name] ?? (() => NOT_SUPPORTED);
  }
  const instance = new WebAssembly.Instance(module, imports);
  memory = instance.exports.memory;
  let code = 0;
  try {
    instance.exports._start();
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    code = error.code;
  }
  const text = parts => {
    const decoder = new TextDecoder();
    return parts.map(part => decoder.decode(part, { stream: true })).join("") + decoder.decode();
  };
  return { code, output: text(output[1]), errors: text(output[2]) };
}
