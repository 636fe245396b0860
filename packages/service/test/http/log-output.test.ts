import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { LogOutput } from '../../src/log-output.js';

function written() {
  const writes: string[] = [];
  const output = new LogOutput({ write: (text) => writes.push(text) });
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const texts = () => writes.map((text) => [...text.matchAll(/"msg":"(\w+)"/g)].map(([, msg]) => msg));
  return { log: pino({}, output), output, turn, texts };
}

describe('the log of a running service', () => {
  it('writes the lines of one turn together, in order, after the turn', async () => {
    const { log, turn, texts } = written();
    log.info('one');
    await Promise.resolve();
    log.info('two');
    expect(texts()).toEqual([]);
    await turn();
    expect(texts()).toEqual([['one', 'two']]);
    log.info('three');
    await turn();
    expect(texts()).toEqual([['one', 'two'], ['three']]);
  });

  it('writes a warning or an error at once, after the lines before it', async () => {
    const { log, turn, texts } = written();
    log.info('one');
    log.warn('two');
    expect(texts()).toEqual([['one', 'two']]);
    log.error('three');
    await turn();
    expect(texts()).toEqual([['one', 'two'], ['three']]);
  });

  it('writes everything when it is told to, and fails where that fails: an audit entry is written before its eviction', () => {
    const { log, output, texts } = written();
    log.info('one');
    output.flush();
    expect(texts()).toEqual([['one']]);
    const full = new LogOutput({
      write() {
        throw new Error('The disk is full.');
      },
    });
    pino({}, full).info('two');
    expect(() => full.flush()).toThrow('The disk is full.');
  });

  it('does not gather more than a turn of many requests needs', () => {
    const { log, texts } = written();
    for (let line = 0; line < 5_000; line += 1) log.info('line');
    expect(texts().flat().length).toBeGreaterThan(4_000);
  });
});
