/** A process of a test: what it said, and an end to it by its own id, whatever happens. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export class Child {
  readonly lines: string[] = [];
  /** What it wrote to its standard error, which is shown too. */
  errors = '';
  private readonly process: ChildProcess;
  private readonly ended: Promise<number | null>;

  /** `through` is a command that runs the script in surroundings of its own, `runtime` one that runs it at all. */
  constructor(
    script: URL,
    args: readonly string[],
    through: readonly string[] = [],
    runtime: readonly string[] = [process.execPath],
  ) {
    const [command = process.execPath, ...rest] = [...through, ...runtime, fileURLToPath(script), ...args];
    this.process = spawn(command, rest, {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text;
      process.stderr.write(text);
    });
    let partial = '';
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (partial + text).split('\n');
      partial = lines.pop() ?? '';
      this.lines.push(...lines);
    });
    this.ended = new Promise((resolve, reject) => {
      // Not on "exit": what it said last may still be on its way.
      this.process.once('close', resolve);
      this.process.once('error', reject);
    });
  }

  get pid(): number {
    if (this.process.pid === undefined) throw new Error('The process did not start.');
    return this.process.pid;
  }

  signal(name: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): void {
    this.process.kill(name);
  }

  /** Whether it is between reading and writing, as far as it has said. */
  get isInside(): boolean {
    return this.lines.at(-1) === 'inside';
  }

  count(line: string): number {
    return this.lines.filter((said) => said === line).length;
  }

  async said(line: string, timeoutMs = 60_000): Promise<void> {
    const until = performance.now() + timeoutMs;
    while (!this.lines.some((said) => said.startsWith(line))) {
      if (this.process.exitCode !== null) throw new Error(`It ended without saying "${line}".`);
      if (performance.now() > until) throw new Error(`It did not say "${line}" within ${timeoutMs} ms.`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** A line on its standard input. */
  tell(line: string): void {
    this.process.stdin?.write(`${line}\n`);
  }

  /** Its exit code; null when a signal ended it. */
  async kill(): Promise<number | null> {
    this.signal('SIGKILL');
    return this.ended;
  }

  /** Closes its standard input, and waits; kills it when that does not help. */
  async finish(timeoutMs = 20_000): Promise<number | null> {
    this.signal('SIGCONT');
    this.process.stdin?.end();
    const timer = setTimeout(() => this.signal('SIGKILL'), timeoutMs);
    const code = await this.ended;
    clearTimeout(timer);
    return code;
  }
}
