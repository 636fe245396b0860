/** `holdfast serve` as a process of its own, on a free port. */
import { Agent, request } from 'node:http';
import { type Place, type Running, until } from '../cli/holdfast.js';

export interface Served {
  readonly url: string;
  readonly running: Running;
  readonly stderr: () => string;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** On a free port. Nothing of the machine's own settings is used. */
export async function serve(
  place: Place,
  args: readonly string[] = [],
  environment: NodeJS.ProcessEnv = {},
): Promise<Served> {
  return addressOf(place.start(['serve', '--port', '0', ...args], environment));
}

/** Once it has said where it listens. */
export async function addressOf(running: Running): Promise<Served> {
  let text = '';
  running.child.stderr?.on('data', (chunk) => {
    text += chunk;
  });
  const [, url = ''] = await until(
    () => /holdfast: (https?:\/\/\S+)/.exec(text),
    () => `the address, in: ${text}`,
  );
  return { url, running, stderr: () => text };
}

export function post(url: string, body: object): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

/** Connections stay open; as many as are asked for at once. */
export const connections = (): Agent => new Agent({ keepAlive: true, noDelay: true });

export function ask(agent: Agent, method: string, url: string, body?: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = body ? { 'content-type': 'application/json' } : {};
    const sent = request(url, { agent, method, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text })).on('error', reject);
    });
    sent.on('error', reject).end(body && JSON.stringify(body));
  });
}
