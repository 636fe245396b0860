import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { UnsupportedError } from '../../src/protocol/index.js';
import { type ClockSources, machineClock, machineMs } from '../../src/stores/sqlite/machine-clock.js';

const HOUR_MS = 3_600_000;

/** A machine that is up for an hour, and a process of it that started a second ago. */
class Machine implements ClockSources {
  upMs = HOUR_MS;
  sleptMs = 0;
  wall = 1_800_000_000_000;
  /** When the process started, by the uptime. */
  startMs = this.upMs - 1_000.4;
  /** What the runtime's clock showed at the boot; Node's showed 0. */
  originMs = 0;
  /** When the container started that has an uptime of its own. */
  containerMs = 0;
  /** How often the uptime was read. */
  reads = 0;

  pass(ms: number): void {
    this.upMs += ms;
    this.wall += ms;
  }
  sleep(ms: number): void {
    this.pass(ms);
    this.sleptMs += ms;
  }
  /** Reading takes time, and others want the processor: sometimes it takes much. */
  uptimeMs(): number {
    this.reads += 1;
    this.pass(this.reads % 7 === 0 ? 3.3 : 0.017);
    const uptimeMs = Math.floor((this.upMs - this.containerMs) / 10) * 10;
    this.pass(0.011);
    return uptimeMs;
  }
  runtimeMs = (): number => this.upMs - this.sleptMs + this.originMs;
  wallMs = (): number => Math.floor(this.wall);
  ageMs = (): number => this.upMs - this.startMs - 40;
  startedMs = (): number => Math.floor(this.startMs / 10) * 10;
}

/** A runtime whose clock counts from the start of the process. */
function ownClock(): Machine {
  const machine = new Machine();
  machine.originMs = -machine.startMs;
  return machine;
}

function expectMachineTime(machine: Machine, clock: () => number): void {
  const read = clock();
  expect(Math.abs(read - machine.upMs)).toBeLessThan(1);
}

it('a clock that counts from the start of the process is corrected to less than a millisecond', () => {
  for (let at = 0; at < 40; at++) {
    const machine = ownClock();
    machine.pass(at * 0.737);
    const clock = machineClock(machine);
    expectMachineTime(machine, clock);
    machine.pass(123_456.7);
    expectMachineTime(machine, clock);
  }
});

it('a clock that counts from the boot is used as it is, after one look at the uptime', () => {
  const machine = new Machine();
  const clock = machineClock(machine);
  expect(clock()).toBe(machine.runtimeMs());
  for (let at = 0; at < 900; at++) {
    machine.pass(1);
    clock();
  }
  expect(machine.reads).toBe(1);
});

it.each([
  ['counts from the boot', () => new Machine()],
  ['counts from the start of the process', ownClock],
])('sleep counts from the first reading after it, where the runtime stops and %s', (_, start) => {
  const machine = start();
  machine.sleep(7 * HOUR_MS);
  const clock = machineClock(machine);
  expectMachineTime(machine, clock);
  for (const ms of [300, 20, 8 * HOUR_MS]) {
    machine.sleep(ms);
    expectMachineTime(machine, clock);
  }
});

it('sleep is noticed within a second even if the wall clock was set back by as much', () => {
  const machine = ownClock();
  const clock = machineClock(machine);
  machine.sleep(HOUR_MS);
  machine.wall -= HOUR_MS;
  machine.pass(1_001);
  expectMachineTime(machine, clock);
});

it('a wall clock set by hand changes nothing', () => {
  const machine = ownClock();
  const clock = machineClock(machine);
  for (const ms of [-HOUR_MS, 5 * HOUR_MS, 60]) {
    machine.wall += ms;
    expectMachineTime(machine, clock);
  }
});

it('in a container with an uptime of its own, a clock that counts from the boot is used as it is', () => {
  const machine = new Machine();
  machine.containerMs = HOUR_MS - 60_000;
  const clock = machineClock(machine);
  machine.pass(5_000);
  expect(clock()).toBe(machine.upMs);
});

it('in a container with an uptime of its own, a clock that counts from elsewhere is refused, with words', () => {
  for (const containerMs of [2_000, HOUR_MS - 60_000]) {
    const machine = ownClock();
    machine.containerMs = containerMs;
    expect(() => machineClock(machine)).toThrow(UnsupportedError);
    expect(() => machineClock(machine)).toThrow(/Run it on Node, or use a store with a server/);
  }
});

it.runIf(process.platform === 'linux')('this machine has such a clock: what /proc/uptime says', () => {
  const uptimeMs = (): number => 1_000 * Number.parseFloat(readFileSync('/proc/uptime', 'utf8'));
  const beforeMs = uptimeMs();
  const readMs = machineMs();
  expect(readMs).toBeGreaterThanOrEqual(beforeMs - 1);
  expect(readMs).toBeLessThanOrEqual(uptimeMs() + 11);
});
