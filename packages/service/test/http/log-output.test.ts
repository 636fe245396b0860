import { pino } from 'pino';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LogOutput } from '../../src/log-output.js';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
/** Longer than between two writes. */
const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 30));
const messagesOf = (text: string) => [...text.matchAll(/"msg":"([^"]+)"/g)].map(([, msg]) => msg);

/** A log whose writes are done at once. */
function written() {
  const writes: string[] = [];
  const output = new LogOutput(
    {
      write(text, done) {
        writes.push(text);
        done();
      },
    },
    { onDrop: () => undefined, onRecovered: () => undefined },
  );
  return { log: pino({}, output), output, texts: () => writes.map(messagesOf) };
}

/** A log whose writes are under way until the next one of them is told its outcome. */
function stalled() {
  const writes: { text: string; done: (error?: Error | null) => void }[] = [];
  const told: string[] = [];
  const output = new LogOutput(
    { write: (text, done) => writes.push({ text, done }), onDropping: () => told.push('dropping') },
    {
      onDrop: (lines) => told.push(`dropped ${lines}`),
      onRecovered: (dropped) => log.warn(`dropped ${dropped}`),
    },
  );
  const log = pino({}, output);
  /** Ends the first write, and returns its text. */
  async function end(error?: Error): Promise<string> {
    const write = writes.shift();
    write?.done(error);
    await pause();
    return write?.text ?? '';
  }
  return { log, output, end, told, count: () => writes.length };
}

const FULL = new Error('The disk is full.');
/** Nine of them fit. */
const LONG = 'x'.repeat(900_000);

afterEach(() => {
  vi.useRealTimers();
});

describe('the log of a running service', () => {
  it('writes the lines of one turn together, in order, after the turn', async () => {
    const { log, texts } = written();
    log.info('one');
    await Promise.resolve();
    log.info('two');
    expect(texts()).toEqual([]);
    await turn();
    expect(texts()).toEqual([['one', 'two']]);
  });

  it('writes the lines of the turns after a write together, 10 ms after it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const { log, texts } = written();
    log.info('one');
    await turn();
    log.info('two');
    await turn();
    log.info('three');
    vi.advanceTimersByTime(9);
    await turn();
    expect(texts()).toEqual([['one']]);
    vi.advanceTimersByTime(1);
    expect(texts()).toEqual([['one'], ['two', 'three']]);
    vi.advanceTimersByTime(10);
    log.info('four');
    await turn();
    expect(texts()).toEqual([['one'], ['two', 'three'], ['four']]);
  });

  it('writes a warning or an error at once, after the lines before it', async () => {
    const { log, texts } = written();
    log.info('one');
    log.warn('two');
    expect(texts()).toEqual([['one', 'two']]);
    log.error('three');
    await turn();
    expect(texts()).toEqual([['one', 'two'], ['three']]);
  });

  it('does not gather more than a turn of many requests needs', () => {
    const { log, texts } = written();
    for (let line = 0; line < 5_000; line += 1) log.info('line');
    expect(texts().flat().length).toBeGreaterThan(4_000);
  });

  it('keeps lines while a write is under way, and writes them together', async () => {
    const { log, output, end, count } = stalled();
    log.warn('one');
    log.warn('two');
    log.info('three');
    await turn();
    expect(count()).toBe(1);
    const flushed = output.flushed();
    expect(messagesOf(await end())).toEqual(['one']);
    expect(messagesOf(await end())).toEqual(['two', 'three']);
    await flushed;
  });

  it('drops what does not fit, and says how much when the reader goes on', async () => {
    const { log, end } = stalled();
    log.warn('first');
    for (let line = 0; line < 20; line += 1) log.info(LONG);
    await end();
    const kept = await end();
    expect(messagesOf(kept)).toEqual([...Array.from({ length: 9 }, () => LONG), 'dropped 11']);
    log.warn('next');
    expect(messagesOf(await end())).toEqual(['next']);
  });

  it('drops the lines of a failed write, goes on with a line of its own, and says how many', async () => {
    const { log, end } = stalled();
    log.warn('one');
    await end(FULL);
    log.info('two');
    log.warn('three');
    await end(FULL);
    log.warn('four');
    expect(await end()).toMatch(/^\n\{.*"four"\}\n$/);
    expect(await end()).toMatch(/^\{.*"dropped 3"\}\n$/);
  });

  it('tells elsewhere of dropped lines at once: that they are dropped, once until it recovers, and each time how many', async () => {
    const { log, end, told } = stalled();
    log.warn('one');
    for (let line = 0; line < 11; line += 1) log.info(LONG);
    expect(told).toEqual(['dropping', 'dropped 1', 'dropped 1']);
    await end(FULL);
    expect(told).toEqual(['dropping', 'dropped 1', 'dropped 1', 'dropped 1']);
    await end();
    await end();
    log.warn('two');
    await end(FULL);
    expect(told.slice(4)).toEqual(['dropping', 'dropped 1']);
  });
});

describe('an entry of the audit in the log', () => {
  it('is written at once, after the lines before it', async () => {
    const { log, output, texts } = written();
    log.info('one');
    await output.append('{"msg":"entry"}\n');
    expect(texts()).toEqual([['one', 'entry']]);
  });

  it('is known to be written only after its own write', async () => {
    const { log, output, end } = stalled();
    log.warn('one');
    let isWritten = false;
    const appended = output.append('{"msg":"entry"}\n').then(() => {
      isWritten = true;
    });
    await end();
    expect(isWritten).toBe(false);
    expect(messagesOf(await end())).toEqual(['entry']);
    await appended;
  });

  it('is refused when the write fails, and when too many lines wait', async () => {
    const { log, output, end } = stalled();
    const failed = output.append('{"msg":"entry"}\n');
    await Promise.all([expect(failed).rejects.toThrow(FULL), end(FULL)]);
    log.warn('one');
    for (let line = 0; line < 10; line += 1) log.info(LONG);
    await expect(output.append(`{"msg":"${LONG}"}\n`)).rejects.toThrow('nobody reads it');
  });

  it('that waits for a stalled reader is refused after a while, and is never written', async () => {
    const { log, output, end } = stalled();
    log.warn('one');
    const late = output.append('{"msg":"entry"}\n');
    log.info('two');
    await expect(late).rejects.toThrow('could not be written within');
    await end();
    expect(messagesOf(await end())).toEqual(['two']);
  });
});
