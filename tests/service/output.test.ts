import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fullPipe } from '../cli/full-pipe.js';
import { BINARY, type Ended, sleep, until, usePlace } from '../cli/holdfast.js';
import { addressOf, ask, connections, post, type Served, serve } from './served.js';

const place = usePlace();
const HOLDFAST = `'${process.execPath}' '${BINARY}'`;

/** The service, started by a shell, for its stdout to be a real pipe or file. */
function served(script: string): Promise<Served> {
  return addressOf(place.startOther('bash', ['-c', script]));
}

async function evict(url: string): Promise<readonly [status: number, outcome: unknown]> {
  const acquired = await post(`${url}/v2/locks/shop/stock/acquire`, { ttl: '60s' });
  expect([200, 423]).toContain(acquired.status);
  const answer = await post(`${url}/v2/locks/shop/stock/evict`, {});
  const { evicted, code } = (await answer.json()) as { evicted?: number; code?: string };
  return [answer.status, evicted ?? code];
}

async function holdersOf(url: string): Promise<number> {
  const lock = (await (await fetch(`${url}/v2/locks/shop/stock`)).json()) as { holders: object[] };
  return lock.holders.length;
}

/** All at once, each answered with 200. */
async function requestAll(url: string, count: number, path = '/healthz'): Promise<void> {
  const agent = connections();
  const answers = Array.from({ length: count }, () => ask(agent, 'GET', `${url}${path}`));
  expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([200]));
  agent.destroy();
}

const requestsIn = (text: string): number => text.match(/"route":"\/healthz"/g)?.length ?? 0;
const eventsIn = (text: string): string[] =>
  [...text.matchAll(/"event":"(\w+)"/g)].map(([, event = '']) => event);

function end({ running }: Served): Promise<Ended> {
  running.kill('SIGTERM');
  return running.ended;
}

const REFUSED = [503, 'audit-unavailable'];

describe('the audit in the log of holdfast serve', () => {
  it.each(['warn', 'silent'])('has evictions at log level %s, too', async (level) => {
    const service = await serve(place, ['--log-level', level]);
    expect(await evict(service.url)).toEqual([200, 1]);
    const { status, stdout } = await end(service);
    expect([status, eventsIn(stdout)]).toEqual([0, ['evict', 'evicted']]);
  });

  it('has the entry before the eviction is answered', async () => {
    const service = await served(`exec ${HOLDFAST} serve --port 0 --log-level warn > log`);
    expect(await evict(service.url)).toEqual([200, 1]);
    expect(eventsIn(readFileSync(join(place.folder, 'log'), 'utf8'))).toContain('evict');
  });
});

describe.runIf(process.platform === 'linux')('a pipe as the audit log of holdfast serve', () => {
  it('that is full does not stop the service: evictions are refused until it is read', async () => {
    const pipe = await fullPipe(place, 'audit');
    const service = await serve(place, ['--audit', 'audit']);
    expect(await evict(service.url)).toEqual(REFUSED);
    expect(await holdersOf(service.url)).toBe(1);
    pipe.drain();
    expect(await evict(service.url)).toEqual([200, 1]);
    expect(eventsIn(pipe.drain())).toEqual(['evict', 'evicted']);
    expect((await end(service)).status).toBe(0);
    pipe.close();
  });

  it('that nobody reads is refused at the start', async () => {
    await place.startOther('mkfifo', ['audit']).ended;
    const { status, stderr } = await place.run(['serve', '--port', '0', '--audit', 'audit']);
    expect([status, stderr]).toEqual([64, expect.stringContaining('The audit log audit cannot be written')]);
  });
});

describe.runIf(process.platform === 'linux')('a stdout of holdfast serve that cannot be written', () => {
  it('because the disk is full, does not end it: evictions are refused, everything else goes on', async () => {
    const service = await served(`exec ${HOLDFAST} serve --port 0 > /dev/full`);
    for (let round = 0; round < 5; round += 1) await requestAll(service.url, 20);
    expect(await evict(service.url)).toEqual(REFUSED);
    expect(await holdersOf(service.url)).toBe(1);
    expect((await end(service)).status).toBe(0);
  });

  it('because the disk is full, is told once on stderr, and counted in the metrics', async () => {
    const service = await served(`exec ${HOLDFAST} serve --port 0 > /dev/full`);
    for (let round = 0; round < 3; round += 1) await requestAll(service.url, 20);
    const dropped = async (): Promise<number> => {
      const metrics = await (await fetch(`${service.url}/metrics`)).text();
      return Number(/^holdfast_log_dropped_total (\d+)$/m.exec(metrics)?.[1]);
    };
    // The last lines may wait for the write before them.
    await expect.poll(dropped).toBeGreaterThanOrEqual(60);
    const { stderr } = await end(service);
    expect(stderr.match(/the log cannot be written: lines are dropped/g)).toHaveLength(1);
  });

  it('because the disk is full, does not refuse evictions with --audit FILE', async () => {
    const service = await served(`exec ${HOLDFAST} serve --port 0 --audit audit > /dev/full`);
    expect(await evict(service.url)).toEqual([200, 1]);
    expect(eventsIn(readFileSync(join(place.folder, 'audit'), 'utf8'))).toEqual(['evict', 'evicted']);
    expect((await end(service)).status).toBe(0);
  });

  it('because its reader has left, is the same; the next reader is told how many lines were dropped', async () => {
    await place.startOther('mkfifo', ['log']).ended;
    const first = place.startOther('head', ['-1', 'log']);
    const service = await served(`exec ${HOLDFAST} serve --port 0 > log`);
    expect((await first.ended).stdout).toContain('listening');
    for (let round = 0; round < 5; round += 1) await requestAll(service.url, 20);
    expect(await evict(service.url)).toEqual(REFUSED);
    expect(await holdersOf(service.url)).toBe(1);
    const second = place.startOther('cat', ['log']);
    let outcome = await evict(service.url);
    for (let tries = 0; tries < 600 && outcome[0] !== 200; tries += 1) {
      await sleep(50);
      outcome = await evict(service.url);
    }
    expect(outcome).toEqual([200, 1]);
    const [, dropped] = await second.said(/"dropped":(\d+)/);
    expect(Number(dropped)).toBeGreaterThanOrEqual(100);
    expect((await end(service)).status).toBe(0);
    const { stdout } = await second.ended;
    expect(eventsIn(stdout)).toEqual(['evict', 'evicted']);
  });

  it('because nobody reads the pipe, keeps no request waiting: all lines are there when the reader goes on', async () => {
    const pipe = await fullPipe(place, 'log');
    const service = await served(`exec ${HOLDFAST} serve --port 0 > log`);
    for (let round = 0; round < 5; round += 1) await requestAll(service.url, 20);
    expect(await evict(service.url)).toEqual(REFUSED);
    expect(await holdersOf(service.url)).toBe(1);
    let text = '';
    await until(
      () => {
        text += pipe.drain();
        return requestsIn(text) >= 100;
      },
      () => `100 requests in ${text}`,
    );
    pipe.close();
    expect([requestsIn(text), eventsIn(text)]).toEqual([100, []]);
    expect(text).not.toContain('dropped');
  });

  it('because nobody reads the pipe, does not keep it from its end', async () => {
    const pipe = await fullPipe(place, 'log');
    const service = await served(`exec ${HOLDFAST} serve --port 0 > log`);
    for (let round = 0; round < 5; round += 1) await requestAll(service.url, 20);
    expect((await end(service)).status).toBe(0);
    pipe.close();
  });

  it('because nobody reads the socket, keeps no request waiting, and not its end: the signal ends it', async () => {
    const service = await serve(place);
    service.running.child.stdout?.pause();
    // Its lines are more than the socket takes.
    const path = `/v2/locks/shop/${'k'.repeat(400)}`;
    for (let round = 0; round < 5; round += 1) await requestAll(service.url, 120, path);
    service.running.kill('SIGTERM');
    const { child } = service.running;
    await until(
      () => child.exitCode !== null || child.signalCode !== null,
      () => 'the exit',
    );
    expect(child.signalCode).toBe('SIGTERM');
    child.stdout?.resume();
  });

  it('because the disk is full, does not end a program that runs the service either', async () => {
    const index = new URL('../../packages/service/dist/index.js', import.meta.url);
    const program = `
      import { configFrom, serve } from '${index}';
      const { url } = await serve(configFrom({ flags: { port: '0' }, defaultStore: () => 'memory:' }));
      process.stderr.write('holdfast: ' + url + '\\n');`;
    const service = await served(
      `exec '${process.execPath}' --input-type=module -e "${program}" > /dev/full`,
    );
    for (let round = 0; round < 5; round += 1) await requestAll(service.url, 20);
    expect(await evict(service.url)).toEqual(REFUSED);
  });
});
