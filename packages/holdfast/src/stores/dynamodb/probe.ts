/** What this table, as configured, guarantees. */
import { type Finding, type Guarantees, UnsupportedError } from '../../protocol/index.js';
import type { Reading } from '../compare-and-swap/register.js';
import type { DynamodbClient } from './client.js';
import { explainedError, nameOf } from './errors.js';
import type { Layout } from './layout.js';
import { NATIVE } from './native-layout.js';
import { describe, type Table, timeToLiveFinding, timeToLiveOf, wrongKey } from './table.js';

interface Place {
  readonly table: string;
  readonly layout: Layout;
}

export async function probe(
  client: DynamodbClient,
  place: Place,
  { earliest, latest }: Reading,
): Promise<Guarantees> {
  const findings: Finding[] = [clockFinding(latest - earliest)];
  const found = await ifAllowed(() => describe(client, place.table), findings, 'dynamodb:DescribeTable');
  if (found) findings.push(...tableFindings(found, place));
  const ttl = await ifAllowed(
    async () => timeToLiveFinding(await timeToLiveOf(client, place.table), place.layout),
    findings,
    'dynamodb:DescribeTimeToLive',
  );
  if (ttl) findings.push(ttl);
  findings.push(...layoutFindings(place.layout), {
    level: 'note',
    text: 'DynamoDB has no wake-ups: waiters poll, at most a few times per second.',
  });
  return { server: serverOf(found), now: Math.round((earliest + latest) / 2), findings };
}

function layoutFindings({ name }: Layout): readonly Finding[] {
  if (name === NATIVE) return [];
  const text = `The layout ${name}: the other software uses the clocks of its own machines, which have to be right.`;
  return [{ level: 'note', text }];
}

/** Null where the call is not allowed or not known: locks do not need it. */
async function ifAllowed<T>(ask: () => Promise<T>, findings: Finding[], right: string): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    const isRefused = explainedError(error, '') instanceof UnsupportedError;
    if (!isRefused && nameOf(error) !== 'UnknownOperationException') throw error;
    const because = error instanceof Error ? error.message : String(error);
    findings.push({
      level: 'note',
      text: `Not everything could be checked, because ${right} is missing: ${because}`,
    });
    return null;
  }
}

function serverOf(found: Table | null): string {
  const region = found?.TableArn?.split(':')[3];
  if (region === undefined) return 'DynamoDB';
  return region === 'ddblocal' ? 'DynamoDB Local' : `DynamoDB in ${region}`;
}

function clockFinding(errorMs: number): Finding {
  return {
    level: 'good',
    text:
      `DynamoDB's clock decides, known to ${errorMs} ms now by the Date header of its replies: no client's clock matters. ` +
      'An expired lock may be taken over that much later.',
  };
}

function tableFindings(found: Table, { table, layout }: Place): readonly Finding[] {
  const wrong = wrongKey(found, layout.table);
  return [
    ...(wrong === null
      ? []
      : [{ level: 'warning', text: `The table "${table}" does not fit: ${wrong}.` } as const]),
    serverFinding(found),
    ...regionFindings(found),
    ...billingFindings(found),
  ];
}

function serverFinding(found: Table): Finding {
  if (found.TableArn?.includes(':ddblocal:')) {
    return {
      level: 'warning',
      text: 'This is DynamoDB Local, made for tests: its data may be lost with it.',
    };
  }
  return {
    level: 'good',
    text: 'Every write is on disk in three zones before it is answered: a crash loses no lock.',
  };
}

/** Each region accepts writes and replicates them later, unless the table is strongly consistent. */
function regionFindings({
  Replicas: replicas = [],
  MultiRegionConsistency: consistency,
}: Table): readonly Finding[] {
  if (replicas.length === 0) return [];
  if (consistency === 'STRONG') {
    return [
      { level: 'good', text: 'A global table with strong consistency: locks hold across its regions.' },
    ];
  }
  const names = replicas.map(({ RegionName }) => RegionName ?? '?').join(', ');
  return [
    {
      level: 'warning',
      text:
        `This is a global table with replicas in ${names}: two regions may both grant one lock. Take locks in one region ` +
        'only, or use a table without replicas, or one with multi-region strong consistency.',
    },
  ];
}

function billingFindings({
  BillingModeSummary: billing,
  ProvisionedThroughput: provisioned,
}: Table): readonly Finding[] {
  if (billing?.BillingMode === 'PAY_PER_REQUEST') {
    return [{ level: 'good', text: 'On-demand billing: the capacity cannot run out.' }];
  }
  const units = provisioned?.WriteCapacityUnits ?? 0;
  if (units === 0) return [];
  return [
    {
      level: 'note',
      text:
        `Provisioned for ${units} writes per second: beyond that DynamoDB throttles, and renewals may come too late. ` +
        'On-demand billing does not.',
    },
  ];
}
