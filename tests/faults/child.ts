/** A process of a test: what it said, what to show when it fails, and an end to it by its own id. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Turn } from './turns.js';

/** A server that is started again on a busy machine, such as a Java program, may take half of that. */
const PATIENCE_MS = 60_000;
const SKEWED_CLOCK = new URL('./skewed-clock.js', import.meta.url);

export class Child {
  readonly name: string;
  readonly lines: string[] = [];
  private errors = '';
  private suspensions = 0;
  private readonly process: ChildProcess;
  private readonly ended: Promise<number | null>;

  /** `clockOffMs`: how wrong its wall clock is. */
  constructor(name: string, script: URL, args: readonly string[], clockOffMs = 0) {
    this.name = name;
    const flags = clockOffMs === 0 ? [] : ['--import', SKEWED_CLOCK.href];
    this.process = spawn(process.execPath, [...flags, fileURLToPath(script), ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, CLOCK_OFF_MS: String(clockOffMs) },
    });
    let partial = '';
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (partial + text).split('\n');
      partial = lines.pop() ?? '';
      this.lines.push(...lines);
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text;
    });
    this.ended = new Promise((resolve, reject) => {
      this.process.once('close', resolve);
      this.process.once('error', reject);
    });
  }

  /** Its turns so far; of one that is not over, only its beginning. */
  get turns(): readonly Turn[] {
    const over = this.turnsSaid('turn ');
    const tokens = new Set(over.map(({ token }) => token));
    return [...over, ...this.turnsSaid('began ').filter(({ token }) => !tokens.has(token))];
  }

  /** The lines that begin so. */
  saying(start: string): readonly string[] {
    return this.lines.filter((line) => line.startsWith(start));
  }

  private turnsSaid(start: string): readonly Turn[] {
    return this.saying(start).map((line) => JSON.parse(line.slice(start.length)) as Turn);
  }

  /** All that it said: the message of an assertion about it. */
  get story(): string {
    const said = this.lines.slice(-60).join('\n');
    return `${this.name} said last:\n${said}\n${this.errors.slice(-4_000)}`;
  }

  /** How often it was suspended. */
  get stops(): number {
    return this.suspensions;
  }

  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    if (name === 'SIGSTOP') this.suspensions += 1;
    this.process.kill(name);
  }

  async said(start: string, timeoutMs = PATIENCE_MS): Promise<void> {
    await this.until(() => this.saying(start).length > 0, `say "${start}"`, timeoutMs);
  }

  /** Until it has had so many more turns than now. */
  async more(count: number, timeoutMs = PATIENCE_MS): Promise<void> {
    const wanted = this.turnsSaid('turn ').length + count;
    await this.until(() => this.turnsSaid('turn ').length >= wanted, `have ${count} more turns`, timeoutMs);
  }

  private async until(isSo: () => boolean, what: string, timeoutMs: number): Promise<void> {
    const until = performance.now() + timeoutMs;
    while (!isSo()) {
      if (this.process.exitCode !== null) throw new Error(`It ended and did not ${what}. ${this.story}`);
      if (performance.now() > until)
        throw new Error(`It did not ${what} within ${timeoutMs} ms. ${this.story}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async kill(): Promise<number | null> {
    this.signal('SIGKILL');
    return this.ended;
  }

  /** Asks it to close and waits for it to end by itself: its exit code, or null when it had to be killed. */
  async finish(timeoutMs = PATIENCE_MS): Promise<number | null> {
    this.process.stdin?.end();
    const timer = setTimeout(() => this.signal('SIGKILL'), timeoutMs);
    const code = await this.ended;
    clearTimeout(timer);
    return code;
  }
}
