/** Runs a command to its end: bounded in time, and its output kept for the message when it fails. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface RunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/** The output, or an error that has all of it. What npm tells its scripts is not passed on to another npm. */
export function run(command: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { cwd, env = {}, timeoutMs = 60_000 } = options;
  const inherited = Object.entries(process.env).filter(([name]) => !/^npm_|^VITEST|^NODE_ENV$/.test(name));
  return new Promise((resolve, reject) => {
    execFile(
      command,
      args,
      { cwd, env: { ...Object.fromEntries(inherited), ...env }, timeout: timeoutMs, killSignal: 'SIGKILL' },
      (cause, stdout, stderr) => {
        if (!cause) return resolve(stdout);
        const end = cause.killed
          ? `was still running after ${timeoutMs} ms`
          : `ended with ${cause.code ?? cause.signal}`;
        reject(new Error(`${command} ${args.join(' ')} ${end}\n${stdout}${stderr}`, { cause }));
      },
    );
  });
}

/** False skips on a laptop without the command, and throws in CI. */
export function hasCommand(command: string): boolean {
  const folders = (process.env.PATH ?? '').split(delimiter);
  if (folders.some((folder) => existsSync(join(folder, command)))) return true;
  if (process.env.CI === 'true') throw new Error(`${command} is not installed, so its tests cannot run.`);
  console.warn(`skipped: ${command} is not installed, so its tests cannot run.`);
  return false;
}
