/** What the manifests make a pod of: its containers, and their environment with the secrets filled in. */
import { type Manifest, manifests } from './manifests.js';

export type Environment = Readonly<Record<string, string>>;
type Labels = Readonly<Record<string, string>>;

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

export interface Container {
  readonly args: readonly string[];
  readonly env: readonly Variable[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly securityContext: object;
  readonly resources: { readonly requests: Labels; readonly limits: Labels };
}

export interface Pod {
  readonly enableServiceLinks: boolean;
  readonly automountServiceAccountToken: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext: object;
  readonly containers: readonly [Container];
  readonly volumes?: readonly { readonly name: string; readonly secret: { readonly secretName: string } }[];
}

interface Workload extends Manifest {
  readonly spec: {
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod };
  };
}

export function manifestOf<T extends Manifest>(kind: string, name: string): T {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  if (!found) throw new Error(`There is no ${kind} "${name}".`);
  return found as T;
}

export const workloads = {
  service: manifestOf<Workload>('Deployment', 'holdfast').spec.template,
  migration: manifestOf<Workload>('Job', 'holdfast-migrate').spec.template,
};

/** Of a container, with these values in the secret "holdfast". */
export function environmentOf({ env }: Container, secret: Environment): Environment {
  return Object.fromEntries(
    env.map(({ name, value, valueFrom }) => {
      const { name: from, key = '' } = valueFrom?.secretKeyRef ?? {};
      if (from !== undefined && from !== 'holdfast') throw new Error(`There is no secret "${from}".`);
      const filled = value ?? secret[key];
      if (filled === undefined) throw new Error(`${name} has no value: the secret has no "${key}".`);
      return [name, filled];
    }),
  );
}
