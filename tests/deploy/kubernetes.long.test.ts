import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { usePlace } from '../cli/holdfast.js';
import { serve } from '../service/served.js';
import { argumentsOf, variables } from './dockerfile.js';
import { compile, type Manifest, manifests, validate } from './manifests.js';
import { environmentOf, manifestOf, type Pod, workloads } from './pods.js';

const place = usePlace();

type Labels = Readonly<Record<string, string>>;
interface Selector {
  readonly matchLabels: Labels;
}

const changed = (from: string, to: string): readonly Manifest[] =>
  JSON.parse(JSON.stringify(manifests).replace(from, to)) as Manifest[];

describe('the manifests', () => {
  it.each(manifests.map((manifest) => [manifest.kind, manifest.metadata.name, manifest] as const))(
    '%s %s is valid by the schema of Kubernetes',
    async (_kind, _name, manifest) => {
      await validate(manifest);
    },
  );

  it('have no member that Kubernetes does not know', async () => {
    await compile(manifests);
    await expect(compile(changed('readinessProbe', 'readinesProbe'))).rejects.toThrow('readinesProbe');
  });

  it('of a wrong type are found by the schema', async () => {
    const [broken] = changed('"replicas":2', '"replicas":"2"').filter(({ kind }) => kind === 'Deployment');
    await expect(validate(broken as Manifest)).rejects.toThrow('replicas');
  });

  it('select the pods that there are', () => {
    const { service, migration } = workloads;
    const selects = ({ matchLabels }: Selector, labels: Labels): boolean =>
      Object.entries(matchLabels).every(([name, value]) => labels[name] === value);
    const specOf = <T>(kind: string, name: string): T => manifestOf<Manifest & { spec: T }>(kind, name).spec;
    const { selector } = specOf<{ selector: Selector }>('Deployment', 'holdfast');
    const budget = specOf<{ selector: Selector }>('PodDisruptionBudget', 'holdfast');
    const front = specOf<{ selector: Labels }>('Service', 'locks');
    const incoming = specOf<{ podSelector: Selector }>('NetworkPolicy', 'holdfast');
    const outgoing = specOf<{ podSelector: Selector }>('NetworkPolicy', 'holdfast-store');
    const ofService = [selector, budget.selector, { matchLabels: front.selector }, incoming.podSelector];
    for (const each of ofService) {
      expect([each, selects(each, service.metadata.labels)]).toEqual([each, true]);
      expect([each, selects(each, migration.metadata.labels)]).toEqual([each, false]);
    }
    for (const { metadata } of [service, migration])
      expect(selects(outgoing.podSelector, metadata.labels)).toBe(true);
  });
});

describe.each(Object.entries(workloads))('the pod of the %s', (_, { spec }) => {
  const pod: Pod = spec;
  const [container] = pod.containers;

  it('is not root, writes to no file system, and gets no rights, token or variables of the cluster', () => {
    const [runAsUser, runAsGroup] = argumentsOf('USER').split(':').map(Number);
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser, runAsGroup });
    expect(pod.securityContext).toMatchObject({ seccompProfile: { type: 'RuntimeDefault' } });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect([pod.automountServiceAccountToken, pod.enableServiceLinks]).toEqual([false, false]);
  });

  it('has its memory limited', () => {
    const memory = expect.stringMatching(/^\d+Mi$/);
    expect(container.resources).toMatchObject({ requests: { memory }, limits: { memory } });
  });
});

describe('the pod of the service', () => {
  const pod: Pod = workloads.service.spec;
  const [container] = pod.containers;

  it('has time to drain and to close before it is killed', () => {
    const { HOLDFAST_DRAIN } = environmentOf(container, { store: 'memory:' });
    const drainSeconds = Number(/^(\d+)s$/.exec(HOLDFAST_DRAIN ?? '')?.[1]);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(drainSeconds + 12);
  });

  it('reads its API keys where the secret is mounted', () => {
    const { HOLDFAST_API_KEYS = '' } = environmentOf(container, { store: 'memory:' });
    const mount = container.volumeMounts?.find(({ mountPath }) => mountPath === dirname(HOLDFAST_API_KEYS));
    const [volume] = pod.volumes ?? [];
    expect(mount?.name).toBe(volume?.name);
    expect(volume?.secret).toMatchObject({ secretName: 'holdfast', items: [{ path: 'keys.json' }] });
  });

  it('starts with its environment, and its probes are answered', async () => {
    const keys = join(place.folder, 'keys', 'keys.json');
    mkdirSync(dirname(keys));
    const made = await place.run(['api-key', 'create', 'someone', '--rights', 'lock:*', '--api-keys', keys]);
    expect(made.status).toBe(0);
    const environment = environmentOf(container, { store: place.store });
    const { url, running } = await serve(place, container.args.slice(1), {
      ...{ ...variables, ...environment },
      ...{ HOLDFAST_API_KEYS: keys, HOLDFAST_DRAIN: '' },
    });
    const { port } = new URL(url);
    for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
      expect(probe?.httpGet.port).toBe(container.ports?.[0]?.name);
      expect((await fetch(`http://127.0.0.1:${port}${probe?.httpGet.path}`)).status).toBe(200);
    }
    running.kill('SIGTERM');
    expect((await running.ended).status).toBe(0);
  });
});
