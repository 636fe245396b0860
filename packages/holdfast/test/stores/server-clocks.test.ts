import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/clock.js';
import { type ClockOffset, type ClockReply, ServerClocks } from '../../src/stores/compare-and-swap/index.js';

const HOUR_MS = 3_600_000;
const ALLOWANCE_MS = 50;

/** Servers whose clocks differ, and the time that passes for all. The first one's clock is the reference. */
class Servers {
  passedMs = 0;
  /** What all processes store and read. */
  readonly stored = new Map<string, ClockOffset>([['s0', { low: 0, high: 0, measuredAtMs: null }]]);
  readonly offsets: number[];
  /** How much faster than the first one's clock they run. */
  readonly drifts: readonly number[];

  constructor(offsets: readonly number[], drifts: readonly number[] = []) {
    this.offsets = [...offsets];
    this.drifts = drifts;
  }

  clockOf(server: number): number {
    const driftMs = this.passedMs * (this.drifts[server] ?? 0);
    return 1_800_000_000_000 + this.passedMs + driftMs + (this.offsets[server] ?? 0);
  }

  get now(): number {
    return this.clockOf(0) - (this.offsets[0] ?? 0);
  }
}

class Process {
  readonly servers: Servers;
  readonly clocks: ServerClocks;
  readonly #startedMs: number;

  constructor(servers: Servers, startedMs: number) {
    this.servers = servers;
    this.#startedMs = startedMs;
    const clock = {
      monotonicMs: () => this.#startedMs + servers.passedMs,
      wallMs: () => 7 + servers.passedMs,
    } as Clock;
    this.clocks = new ServerClocks(ALLOWANCE_MS, clock);
  }

  /** One reply, whose time has whole seconds. */
  hear(server: number, thereMs: number, backMs: number): ClockReply {
    const sentMs = this.#startedMs + this.servers.passedMs;
    this.servers.passedMs += thereMs;
    const from = Math.floor(this.servers.clockOf(server) / 1_000) * 1_000;
    this.servers.passedMs += backMs;
    const receivedMs = this.#startedMs + this.servers.passedMs;
    return { server: `s${server}`, sentMs, receivedMs, from, until: from + 1_000 };
  }

  settle(...heard: readonly number[]): boolean {
    return this.clocks.settle(
      this.servers.stored,
      heard.map((server) => this.hear(server, 3, 4)),
    );
  }

  store(): boolean {
    const { offsets, contradicts } = this.clocks.measured();
    this.#keep(offsets);
    return contradicts;
  }

  /** As once a minute: some servers are heard, and what others stored is read. */
  compareAgain(...heard: readonly number[]): boolean {
    for (const server of heard) this.clocks.note(this.hear(server, 3, 4));
    this.clocks.refresh(this.servers.stored);
    const { offsets, contradicts } = this.clocks.measured(true);
    this.#keep(offsets);
    return contradicts;
  }

  #keep(offsets: ReadonlyMap<string, ClockOffset>): void {
    for (const [server, offset] of offsets) this.servers.stored.set(server, offset);
    this.clocks.believe(offsets);
  }
}

function expectRight({ clocks, servers }: Process): void {
  const reading = clocks.reading();
  if (!reading) return;
  expect(reading.earliest).toBeLessThanOrEqual(servers.now);
  expect(reading.latest).toBeGreaterThanOrEqual(servers.now);
}

describe('the time from the clocks of several servers', () => {
  it('lies between the earliest and the latest of every process, whichever servers answer it and however far apart they are', () => {
    const step = fc.record({
      process: fc.nat(2),
      server: fc.nat(2),
      idle: fc.nat(20_000),
      there: fc.nat(400),
      back: fc.nat(400),
      store: fc.boolean(),
    });
    void fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -HOUR_MS, max: HOUR_MS }), { minLength: 3, maxLength: 3 }),
        fc.array(step, { minLength: 1, maxLength: 60 }),
        (offsets, steps) => {
          const servers = new Servers([0, ...offsets.slice(1)]);
          const processes = [1_000, 50_000, 9].map((startedMs) => new Process(servers, startedMs));
          for (const { process: at, server, idle, there, back, store } of steps) {
            servers.passedMs += idle;
            const process = processes[at] as Process;
            if (process.clocks.reading() === null) {
              if (!servers.stored.has(`s${server}`)) process.settle(server, 0);
              else process.settle(server);
            } else process.clocks.note(process.hear(server, there, back));
            if (store) process.store();
            for (const one of processes) expectRight(one);
            expect(process.clocks.jumps).toBe(0);
          }
        },
      ),
    );
  });

  it('lies there also when clocks drift for days, heard often, seldom or by nobody', () => {
    const drift = fc.double({ min: -0.000_2, max: 0.000_2, noNaN: true });
    const step = fc.record({
      process: fc.nat(2),
      heard: fc.uniqueArray(fc.nat(2), { minLength: 1, maxLength: 3 }),
      idle: fc.oneof(fc.nat(60_000), fc.nat(12 * HOUR_MS)),
      restarted: fc.boolean(),
    });
    void fc.assert(
      fc.property(
        fc.tuple(drift, drift),
        fc.array(step, { minLength: 1, maxLength: 40 }),
        (drifts, steps) => {
          const servers = new Servers([0, HOUR_MS, -HOUR_MS], [0, ...drifts]);
          const processes = [1_000, 50_000, 9].map((startedMs) => new Process(servers, startedMs));
          expect((processes[0] as Process).settle(0, 1, 2)).toBe(true);
          (processes[0] as Process).store();
          for (const { process: at, heard, idle, restarted } of steps) {
            servers.passedMs += idle;
            if (restarted) processes[at] = new Process(servers, at);
            const process = processes[at] as Process;
            if (process.clocks.reading() === null) expect(process.settle(...heard)).toBe(true);
            expect(process.compareAgain(...heard)).toBe(false);
            for (const one of processes) expectRight(one);
            expect(process.clocks.jumps).toBe(0);
          }
        },
      ),
    );
  });

  it('is not less certain after days, where a process reads all clocks once per minute', () => {
    const servers = new Servers([0, 5_000], [0, 0.000_02]);
    const comparing = new Process(servers, 0);
    comparing.settle(0, 1);
    comparing.store();
    for (let minutes = 0; minutes < 3 * 24 * 60; minutes++) {
      // No whole number of seconds.
      servers.passedMs += 60_123;
      comparing.compareAgain(0, 1);
    }
    const other = new Process(servers, 77);
    other.settle(1);
    expectRight(other);
    const { earliest = 0, latest = 0 } = other.clocks.reading() ?? {};
    expect(latest - earliest).toBeLessThan(2_000);
  });

  it('goes on by another clock where the reference is not heard for hours, and is never ahead of what it was', () => {
    const servers = new Servers([0, 5_000, -7_000], [0, 0.000_1, -0.000_1]);
    const process = new Process(servers, 0);
    process.settle(0, 1, 2);
    process.store();
    expect(process.clocks.nextReference(['s0', 's1'])).toBeNull();
    expect(process.clocks.nextReference(['s1', 's2'])).toBeNull();
    for (let minutes = 0; minutes < 180; minutes++) {
      servers.passedMs += 60_123;
      process.compareAgain(1, 2);
    }
    const next = process.clocks.nextReference(['s1', 's2']);
    if (!next) throw new Error('None was found.');
    const at = Number(next.server.slice(1));
    expect(next.offset).toEqual({ low: next.offset.high, high: next.offset.high, measuredAtMs: null });
    const behindMs = servers.now - (servers.clockOf(at) - next.offset.high);
    expect(behindMs).toBeGreaterThanOrEqual(0);
    expect(behindMs).toBeLessThan(60_000);
    process.compareAgain(0, 1, 2);
    expect(process.clocks.nextReference(['s0', 's1', 's2'])).toBeNull();
  });

  it('is not known from a clock that was never compared', () => {
    const process = new Process(new Servers([0, HOUR_MS]), 0);
    expect(process.settle(1)).toBe(false);
    expect(process.clocks.reading()).toBeNull();
    process.clocks.note(process.hear(1, 3, 4));
    expect(process.clocks.reading()).toBeNull();
  });

  it('becomes exact at the second that changes, and so does the offset of the other clock', () => {
    const servers = new Servers([0, 700_123]);
    const process = new Process(servers, 0);
    expect(process.settle(0, 1)).toBe(true);
    process.store();
    for (let rounds = 0; rounds < 150; rounds++) {
      for (const server of [0, 1]) process.clocks.note(process.hear(server, 3, 4));
    }
    process.store();
    const { low = 0, high = 0 } = servers.stored.get('s1') ?? {};
    expect(low).toBeLessThanOrEqual(700_123);
    expect(high).toBeGreaterThanOrEqual(700_123);
    expect(high - low).toBeLessThan(300);
  });

  it('is unknown once a clock was set; then the majority decides, and the offset of that clock is measured again', () => {
    const servers = new Servers([0, 10, 20]);
    const process = new Process(servers, 0);
    expect(process.settle(0, 1, 2)).toBe(true);
    process.store();
    servers.offsets[1] = HOUR_MS;
    process.clocks.note(process.hear(1, 3, 4));
    expect(process.clocks.reading()).toBeNull();
    expect(process.clocks.jumps).toBe(1);
    expect(process.settle(0, 1, 2)).toBe(true);
    expectRight(process);
    process.clocks.refresh(servers.stored);
    // Whoever knows the old offset has to read the new one.
    expect(process.store()).toBe(true);
    expect(process.store()).toBe(false);
    expect(servers.stored.get('s1')?.low).toBeGreaterThan(HOUR_MS / 2);
    process.clocks.note(process.hear(1, 3, 4));
    expectRight(process);
    expect(process.clocks.reading()).not.toBeNull();
  });

  it('is unknown where two clocks contradict each other and there is no third', () => {
    const servers = new Servers([0, 10]);
    const process = new Process(servers, 0);
    expect(process.settle(0, 1)).toBe(true);
    process.store();
    servers.offsets[1] = HOUR_MS;
    expect(process.settle(0, 1)).toBe(false);
    const other = new Process(servers, 5);
    expect(other.settle(1, 0)).toBe(false);
    expect(other.clocks.reading()).toBeNull();
  });
});
