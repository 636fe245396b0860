/** Fresh folders with the packed packages, as a stranger gets them from the registry. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from '../repository/shell.js';
import { root } from '../repository/tree.js';

export interface Packed {
  readonly name: string;
  readonly filename: string;
  readonly unpackedSize: number;
  readonly files: readonly string[];
}

/** Packs all packages into this folder, as they are published. */
export async function packInto(folder: string): Promise<readonly Packed[]> {
  return JSON.parse(
    await run(process.execPath, [join(root, 'packages/pack.js'), folder, '--json'], { cwd: root }),
  );
}

export class Projects {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-projects-'));
  packed: readonly Packed[] = [];

  async pack(): Promise<void> {
    this.packed = await packInto(this.folder);
  }

  /** A folder with these files, these packages of ours, and links to these packages of others. */
  async make(
    files: Readonly<Record<string, string>>,
    others: readonly string[] = [],
    own: readonly string[] = ['holdfast'],
  ): Promise<string> {
    const project = mkdtempSync(join(this.folder, 'project-'));
    const modules = join(project, 'node_modules');
    for (const name of own) {
      const found = this.packed.find((packed) => packed.name === name);
      if (!found) throw new Error(`There is no tarball of ${name}.`);
      mkdirSync(join(modules, name), { recursive: true });
      const args = [
        '-xzf',
        join(this.folder, found.filename),
        '-C',
        join(modules, name),
        '--strip-components=1',
      ];
      await run('tar', args, { cwd: project });
    }
    for (const name of others) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(root, 'node_modules', name), join(modules, name));
    }
    for (const [name, text] of Object.entries({ 'package.json': '{ "private": true }', ...files })) {
      writeFileSync(join(project, name), text);
    }
    return project;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
