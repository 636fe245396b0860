/** The Kubernetes manifests of `deploy/kubernetes`, and the compiler as a check of their members: the schema itself allows unknown ones. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { run } from '../repository/shell.js';
import { matching, read, root } from '../repository/tree.js';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/** YAML 1.1, as kubectl reads it. */
function manifestsIn(text: string): readonly Manifest[] {
  return parseAllDocuments(text, { version: '1.1' }).map((document) => {
    const [error] = [...document.errors, ...document.warnings];
    if (error) throw error;
    return document.toJS() as Manifest;
  });
}

export const manifests = matching(/^deploy\/kubernetes\/.*\.yaml$/).flatMap((file) =>
  manifestsIn(read(file)),
);

const moduleOf = ({ apiVersion, kind }: Manifest): string => `kubernetes-models/${apiVersion}/${kind}`;

interface Model {
  validate(): void;
}

/** Throws the finding of the JSON schema. */
export async function validate(manifest: Manifest): Promise<void> {
  const models = (await import(moduleOf(manifest))) as Record<string, new (data: Manifest) => Model>;
  const Kind = models[manifest.kind];
  if (!Kind) throw new Error(`${moduleOf(manifest)} has no model ${manifest.kind}.`);
  new Kind(manifest).validate();
}

/** Rejects with the compiler's words for a member that does not exist or has a wrong type. */
export async function compile(all: readonly Manifest[]): Promise<void> {
  mkdirSync(join(root, '.tmp'), { recursive: true });
  const folder = mkdtempSync(join(root, '.tmp', 'manifests-'));
  const lines = all.map((manifest, at) => {
    const type = `import('${moduleOf(manifest)}').I${manifest.kind}`;
    return `export const manifest${at}: ${type} = ${JSON.stringify(manifest, null, 2)};`;
  });
  writeFileSync(join(folder, 'manifests.ts'), lines.join('\n'));
  const options = ['--strict', '--noEmit', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023'];
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const args = [tsc, '--ignoreConfig', ...options, '--types', '', 'manifests.ts'];
  try {
    await run(process.execPath, args, { cwd: folder });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
