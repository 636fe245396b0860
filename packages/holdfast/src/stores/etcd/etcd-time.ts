/**
 * The time of an etcd cluster, from the header `Date` of its replies: whole seconds of the clock of the member that
 * answered. etcd itself keeps no time that its members share, so the offsets of their clocks are stored in etcd:
 *
 *   clock            a random text: the generation of the offsets. Every write of a lock is made on its condition
 *   clock/MEMBER     [low, high, measured at]: this member's clock minus the time. [offset, offset]: the reference
 *
 * A process reads them with its first call. Then it asks every endpoint, and stores offsets that are missing. It does both
 * again once a minute while it is in use.
 */
import { type Clock, systemClock } from '../../clock.js';
import { UnsupportedError } from '../../protocol/index.js';
import type { Reading, StoreTime } from '../compare-and-swap/register.js';
import { type ClockOffset, type ClockReply, ServerClocks } from '../compare-and-swap/server-clocks.js';
import type { DatedAnswer, Gateway } from './gateway.js';
import { encoded, put, RANGE, rangeOf, TXN, textOf } from './requests.js';

/** How far two clocks may contradict each other before one counts as set. */
const ALLOWANCE_MS = 50;
/** The usual error before the second has changed once: the resolution of `Date`, and the allowance on both sides. */
export const CLOCK_ERROR_MS = 1_000 + 2 * ALLOWANCE_MS;
/** Members that have not answered this long after the first one are not waited for. */
const OTHERS_MS_MAX = 300;
/** How often new measurements are looked for. */
const MEASURE_MS = 1_000;
/** How often all endpoints are asked, and the stored offsets read. */
const COMPARE_MS = 60_000;

interface Stored {
  readonly generation: string | null;
  readonly offsets: ReadonlyMap<string, ClockOffset>;
}

const timesOfGateways = new WeakMap<Gateway, Map<string, EtcdTime>>();

/** One per gateway and prefix: all stores of a client learn from its replies. */
export function timeOf(gateway: Gateway, prefix: string): EtcdTime {
  const times = timesOfGateways.get(gateway) ?? new Map<string, EtcdTime>();
  timesOfGateways.set(gateway, times);
  const time = times.get(prefix) ?? new EtcdTime(gateway, prefix);
  if (!times.has(prefix)) gateway.onReply.add((reply) => time.note(reply));
  times.set(prefix, time);
  return time;
}

export class EtcdTime implements StoreTime {
  readonly clocks: ServerClocks;
  readonly #gateway: Gateway;
  readonly #name: string;
  readonly #clock: Clock;
  #measuredMs = Number.NEGATIVE_INFINITY;
  #comparedMs = Number.NEGATIVE_INFINITY;
  #generation: string | null = null;
  /** The last error that no caller was told; undefined for none. */
  error: unknown;

  constructor(gateway: Gateway, prefix: string, clock: Clock = systemClock) {
    this.#gateway = gateway;
    this.#name = `${prefix}clock`;
    this.#clock = clock;
    this.clocks = new ServerClocks(ALLOWANCE_MS, clock);
  }

  get jumps(): number {
    return this.clocks.jumps;
  }

  reading(): Reading | null {
    return this.clocks.reading();
  }

  isFresh(): boolean {
    return this.clocks.isFresh();
  }

  /** The condition of every write: offsets of another generation define another time. */
  get condition(): object {
    return { target: 'VALUE', key: encoded(this.#name), value: encoded(this.#generation ?? '') };
  }

  get conditionRange(): object {
    return { request_range: { key: encoded(this.#name) } };
  }

  /** Called with the generation that a failed write found. */
  check(generation: string | null): void {
    if (generation !== this.#generation) this.clocks.forget();
  }

  note(reply: ClockReply): void {
    this.clocks.note(reply);
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#measuredMs < MEASURE_MS || this.#generation === null) return;
    this.#measuredMs = nowMs;
    const isDue = nowMs - this.#comparedMs >= COMPARE_MS;
    (isDue ? this.#compareAgain() : this.#storeMeasured()).catch((error: unknown) => {
      this.error = error;
    });
  }

  async sample(): Promise<void> {
    if (this.reading()) {
      await this.#gateway.call(RANGE, { key: encoded(this.#name) });
      if (this.isFresh()) return;
    }
    for (let tries = 0; tries < 3; tries++) {
      this.#comparedMs = this.#clock.monotonicMs();
      const answers = await this.#askAll();
      const stored = await this.#agreed(answers);
      if (stored === null) continue;
      const replies = answers.flatMap(({ time }) => time ?? []);
      if (!this.clocks.settle(stored.offsets, replies)) {
        throw new Error(
          'The clocks of the members of etcd contradict each other, and no majority of them agrees: one was set while ' +
            'locks were in use. Set the clocks right; `holdfast doctor` lists their differences.',
        );
      }
      this.#generation = stored.generation;
      await this.#storeMeasured();
      if (!(await this.#replaceReference(stored, answers))) return;
    }
    throw new Error('Other processes changed the stored clocks of etcd three times in a row.');
  }

  /** Clocks drift: all are heard again, and what other processes measured is read. */
  async #compareAgain(): Promise<void> {
    this.#comparedMs = this.#clock.monotonicMs();
    const answers = await this.#askAll();
    const stored = storedIn(answers, this.#name);
    if (!this.reading()) return;
    this.check(stored.generation);
    if (!this.reading()) return;
    this.clocks.refresh(stored.offsets);
    await this.#storeMeasured(true);
    await this.#replaceReference(stored, answers);
  }

  /** Every endpoint is asked at once for its time and the stored offsets. Rejects when none answers. */
  async #askAll(urls = this.#gateway.endpoints): Promise<DatedAnswer[]> {
    const success = [this.conditionRange, { request_range: rangeOf(`${this.#name}/`) }];
    const answers: DatedAnswer[] = [];
    const asked = urls.map(async (url) => void answers.push(await this.#gateway.ask(url, TXN, { success })));
    await Promise.any(asked).catch((error: AggregateError) => {
      throw error.errors[0];
    });
    await new Promise<void>((resolve) => {
      const timer = this.#clock.timer(OTHERS_MS_MAX, resolve);
      timer.keepAlive(false);
      void Promise.allSettled(asked).then(() => {
        timer.cancel();
        resolve();
      });
    });
    return [...answers];
  }

  /** The stored offsets, with one of a member that answered; null where they were just written. */
  async #agreed(answers: DatedAnswer[]): Promise<Stored | null> {
    const first = answers.find(({ time }) => time)?.time;
    if (!first) {
      throw new UnsupportedError(
        'The replies of etcd have no Date header, so its time is not known, and locks need it. etcd sends the header; ' +
          'a proxy in between has to pass it on.',
      );
    }
    const stored = storedIn(answers, this.#name);
    if (stored.generation === null) {
      await this.#begin({ target: 'VERSION', key: encoded(this.#name), version: '0' }, first.server, stored);
      return null;
    }
    if (answers.some(({ time }) => time && stored.offsets.has(time.server))) return stored;
    const { members = [] } = await this.#gateway.call('/v3/cluster/member/list', {});
    const known = members.filter(({ ID }) => stored.offsets.has(ID));
    if (known.length === 0) {
      // Restored from a backup: all members are new, and none of the old ones comes back.
      const condition = { target: 'VALUE', key: encoded(this.#name), value: encoded(stored.generation) };
      await this.#begin(condition, first.server, { ...stored, offsets: new Map() });
      return null;
    }
    const urls = known.flatMap(({ clientURLs = [] }) => clientURLs);
    try {
      answers.push(...(await this.#askAll(urls)));
    } catch (cause) {
      throw new Error(
        `The clocks of the members of etcd that answer were never compared with those of ${urls.join(', ')}, which do ` +
          'not answer. Start one of these, or name it among the endpoints.',
        { cause },
      );
    }
    return stored;
  }

  async #begin(condition: object, reference: string, { offsets }: Stored): Promise<void> {
    const success = [put(this.#name, this.#clock.randomId())];
    if (offsets.size === 0) success.push(put(`${this.#name}/${reference}`, '[0,0]'));
    await this.#gateway.call(TXN, { compare: [condition], success });
  }

  /** Offsets that contradict the stored ones begin a new generation: whoever knows the old ones has to read them again. */
  async #storeMeasured(again = false): Promise<void> {
    const { offsets, contradicts } = this.clocks.measured(again);
    if (offsets.size === 0 || this.#generation === null) return;
    const generation = contradicts ? this.#clock.randomId() : this.#generation;
    const success = [...offsets].map(([server, offset]) => this.#putOffset(server, offset));
    if (contradicts) success.push(put(this.#name, generation));
    const { succeeded } = await this.#gateway.call(TXN, { compare: [this.condition], success });
    if (!succeeded) return this.clocks.forget();
    this.#generation = generation;
    this.clocks.believe(offsets);
  }

  /** True: the time is defined by another clock now, and unknown until the next sample. */
  async #replaceReference({ offsets }: Stored, answers: readonly DatedAnswer[]): Promise<boolean> {
    const next = this.clocks.nextReference(answers.flatMap(({ time }) => time?.server ?? []));
    if (!next) return false;
    const others = [...offsets.keys()].filter((server) => server !== next.server);
    const success = [
      put(this.#name, this.#clock.randomId()),
      this.#putOffset(next.server, next.offset),
      ...others.map((server) => ({ request_delete_range: { key: encoded(`${this.#name}/${server}`) } })),
    ];
    await this.#gateway.call(TXN, { compare: [this.condition], success });
    this.clocks.forget();
    return true;
  }

  #putOffset(server: string, { low, high, measuredAtMs }: ClockOffset): object {
    const numbers = measuredAtMs === null ? [low, high] : [low, high, measuredAtMs];
    return put(`${this.#name}/${server}`, JSON.stringify(numbers));
  }
}

/** The newest of the answers counts: the table grows while they are on their way. */
function storedIn(answers: readonly DatedAnswer[], name: string): Stored {
  const revisionOf = ({ answer }: DatedAnswer): bigint => BigInt(answer.header?.revision ?? 0);
  const newest = answers.reduce((best, one) => (revisionOf(one) > revisionOf(best) ? one : best));
  const [clock, table] = (newest.answer.responses ?? []).map(
    ({ response_range }) => response_range?.kvs ?? [],
  );
  const generation = clock?.[0] ? textOf(clock[0].value) : null;
  const offsets = new Map<string, ClockOffset>();
  for (const { key, value } of table ?? []) {
    const server = textOf(key).slice(name.length + 1);
    const offset = offsetIn(textOf(value));
    if (offset && !server.includes('/')) offsets.set(server, offset);
  }
  return { generation, offsets };
}

/** Null for a value of other software. */
function offsetIn(text: string): ClockOffset | null {
  if (!/^\[-?[\d.]+(,-?[\d.]+){1,2}\]$/.test(text)) return null;
  const [low = 0, high = 0, measuredAtMs = null] = text.slice(1, -1).split(',').map(Number);
  const isOffset = measuredAtMs === null ? low === high : low <= high;
  return isOffset ? { low, high, measuredAtMs } : null;
}
