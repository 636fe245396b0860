/** `holdfast serve`: runs the lock service with its dashboard until a signal ends it. */
import { readFileSync } from 'node:fs';
import type { Output, Running, ServiceConfig, SettingName } from 'holdfast-service';
import type { Command } from '../command.js';
import { EXIT, Failure, failureOf, reasonOf, usageFailure } from '../failure.js';
import { type Options, SERVICE_OPTION_NAMES } from '../options/options.js';
import { formatDuration } from '../printing/describe.js';
import { redactIn } from '../printing/redaction.js';
import { jsonText } from '../printing/terminal.js';
import { loadService, type Service } from '../service.js';
import { defaultStoreUrl } from '../session.js';

export const serve: Command = {
  name: 'serve',
  operands: { min: 0, max: 0, text: '' },
  options: SERVICE_OPTION_NAMES,
  without: ['namespace', 'json'],
  summary: 'run the lock service with its dashboard',
  about: `Serves locks and a dashboard over HTTP, on any store. Settings come from flags, then from the environment
(HOLDFAST_PORT for --port, and so on), then from the file that --config names (JSON, or *.properties of
LockServiceCentral). Without API keys or JWTs configured, all requests are allowed, and the service listens on
loopback only, unless --insecure is given. TERM, INT and HUP end it, after open requests are answered.`,
  examples: [
    ['holdfast serve', 'the embedded store, on http://127.0.0.1:8080'],
    [
      'holdfast serve --store redis://localhost:6379 --host 0.0.0.0 --api-keys keys.json',
      'for other machines',
    ],
    ['holdfast serve --print-config', 'the settings in force, secrets hidden'],
  ],

  async run({ options }, terminal) {
    const service = await loadService();
    const config = configOf(service, options);
    for (const note of config.notes) terminal.err(`holdfast: ${note}`);
    if (options.has('print-config')) {
      terminal.out(jsonText(service.shownConfig(config), 2));
      return EXIT.ok;
    }
    const stopped = nextSignal();
    const onDropping = (): void =>
      terminal.err('holdfast: the log cannot be written: lines are dropped until its reader goes on');
    const running = await started(service, config, { write: terminal.log, onDropping });
    terminal.err(
      `holdfast: ${running.url}${running.open ? ' (no authentication: all requests are allowed)' : ''}`,
    );
    const signal = await stopped;
    const drained = config.drainMs > 0 ? `draining for ${formatDuration(config.drainMs)}, then ` : '';
    terminal.err(`holdfast: ${signal}: ${drained}closing`);
    await running.close();
    // If stdout or stderr is a socket that nobody reads, Node does not exit, so the signal ends the process.
    process.once('exit', () => void (terminal.hangs() && process.kill(process.pid, signal)));
    return EXIT.ok;
  },
};

function configOf({ configFrom, SETTINGS }: Service, options: Options): ServiceConfig {
  const flags: Partial<Record<SettingName, string>> = {};
  for (const { name, kind } of SETTINGS) {
    if (!options.has(name)) continue;
    flags[name] = kind === 'switch' ? 'true' : (options.text(name) ?? '');
  }
  const path = options.text('config');
  return configFrom({
    flags,
    environment: process.env,
    ...(path !== undefined && { [path.endsWith('.properties') ? 'properties' : 'file']: contentOf(path) }),
    // Called only if no setting names a store, because there may be no home folder.
    defaultStore: defaultStoreUrl,
  });
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw usageFailure(`--config: ${reasonOf(error)}`);
  }
}

/** System calls that open the port. */
const OPENING: ReadonlySet<string> = new Set(['listen', 'bind', 'getaddrinfo']);
/** Explanations of their errors. */
const LISTENING: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program uses this port; choose another --port',
  EACCES: 'this user may not use this port; choose a --port above 1023',
  EADDRNOTAVAIL: 'this machine does not have that address; see --host',
  ENOTFOUND: 'there is no such host; see --host',
};

async function started({ serve: run }: Service, config: ServiceConfig, log: Output): Promise<Running> {
  try {
    return await run(config, log);
  } catch (error) {
    const failure = failureOf(error);
    if (failure) throw new Failure(failure.status, redactIn(failure.message, config.store), failure.details);
    const { code = '', syscall = '' } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
    if (!OPENING.has(syscall)) throw error;
    const reason = LISTENING[code] ?? `cannot listen there: ${reasonOf(error)}; see --host and --port`;
    throw new Failure(EXIT.unavailable, `${config.host}:${config.port}: ${reason}`, { code });
  }
}

/** Resolves with the first signal. A second one of any kind ends the process at once, as without a listener. */
function nextSignal(): Promise<NodeJS.Signals> {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  return new Promise((resolve) => {
    const listener = (signal: NodeJS.Signals): void => {
      for (const each of signals) process.off(each, listener);
      resolve(signal);
    };
    for (const signal of signals) process.on(signal, listener);
  });
}
