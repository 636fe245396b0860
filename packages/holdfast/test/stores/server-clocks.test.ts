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
  readonly stored = new Map<string, ClockOffset>([['s0', { low: 0, high: 0 }]]);
  readonly offsets: number[];

  constructor(offsets: readonly number[]) {
    this.offsets = [...offsets];
  }

  clockOf(server: number): number {
    return 1_800_000_000_000 + this.passedMs + (this.offsets[server] ?? 0);
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

  store(): void {
    const measured = this.clocks.measured();
    for (const [server, offset] of measured) this.servers.stored.set(server, offset);
    this.clocks.believe(measured);
  }
}

function expectRight({ clocks, servers }: Process): void {
  const reading = clocks.reading();
  if (!reading) return;
  expect(reading.earliest).toBeLessThanOrEqual(servers.now);
  expect(reading.latest).toBeGreaterThanOrEqual(servers.now);
}

describe('the time from the clocks of several servers', () => {
  it('lies between the earliest and the latest of every process, whichever servers it hears and however far apart they are', () => {
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
    process.store();
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
