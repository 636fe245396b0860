/** A private Prometheus on loopback, with the configuration of the caller. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath } from './find.js';
import { need } from './install.js';
import { type Controls, supervise } from './supervise.js';

export interface PrometheusServer extends Controls {
  readonly url: string;
}

/** Is it this one: another may listen on the port. */
async function answers(port: number, folder: string): Promise<boolean> {
  const reply = await fetch(`http://127.0.0.1:${port}/api/v1/status/flags`);
  const { data } = (await reply.json()) as { readonly data: Readonly<Record<string, string>> };
  return data['config.file'] === configIn(folder);
}

const configIn = (folder: string): string => join(folder, 'prometheus.yml');

/** `config` is the text of a `prometheus.yml`. */
export async function startPrometheus(config: string): Promise<PrometheusServer> {
  const command = await need('prometheus');
  const controls = await supervise({
    name: 'prometheus',
    gentle: 'SIGTERM',
    launch: (port, folder) => {
      writeFileSync(configIn(folder), config);
      const args = [
        `--config.file=${configIn(folder)}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ];
      return { command, args, folder };
    },
    answers: (port, _pid, folder) => answers(port, folder),
  });
  return Object.assign(controls, { url: `http://${controls.host}:${controls.port}` });
}

/** Its tool that checks files. Installed with it. */
export const promtool = (): string => findOnPath('promtool') ?? 'promtool';
