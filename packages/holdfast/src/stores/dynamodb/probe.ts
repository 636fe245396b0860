/** What this table, as it is set, really promises to locks. */
import { type Finding, type Guarantees, UnsupportedError } from '../../protocol/index.js';
import type { Reading } from '../compare-and-swap/register.js';
import type { DynamodbClient } from './client.js';
import type { Layout } from './layout.js';
import { NATIVE } from './native-layout.js';
import { describe, type Table, timeToLiveFinding, timeToLiveOf, wrongKey } from './table.js';
import { inWords, nameOf } from './trouble.js';

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
  const found = await look(() => describe(client, place.table), findings, 'dynamodb:DescribeTable');
  if (found) findings.push(...tableFindings(found, place));
  const ttl = await look(
    async () => timeToLiveFinding(await timeToLiveOf(client, place.table), place.layout),
    findings,
    'dynamodb:DescribeTimeToLive',
  );
  if (ttl) findings.push(ttl);
  findings.push(...layoutFindings(place.layout), {
    level: 'note',
    text: 'DynamoDB wakes nobody: waiters ask again, a few times in a second at most.',
  });
  return { server: serverOf(found), now: Math.round((earliest + latest) / 2), findings };
}

function layoutFindings({ name }: Layout): readonly Finding[] {
  if (name === NATIVE) return [];
  const text = `The layout ${name}: the other software goes by the clocks of its own machines, which have to be right.`;
  return [{ level: 'note', text }];
}

/** Rights for looking are not needed for locking, and not every endpoint knows these calls. */
async function look<T>(ask: () => Promise<T>, findings: Finding[], right: string): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    const isRefused = inWords(error, '') instanceof UnsupportedError;
    if (!isRefused && nameOf(error) !== 'UnknownOperationException') throw error;
    const because = error instanceof Error ? error.message : String(error);
    findings.push({ level: 'note', text: `Not all could be looked at, for want of ${right}: ${because}` });
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
      `Time is DynamoDB's, known to ${errorMs} ms now, by the Date header of its replies: no client's clock matters. ` +
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
      text: 'This is DynamoDB Local, made for tests: what it keeps may be gone with it.',
    };
  }
  return {
    level: 'good',
    text: 'Every write is on disk in three zones before it is answered: a crash loses no lock.',
  };
}

/** Each region takes writes and tells the others later, unless they were made strongly consistent. */
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
    return [{ level: 'good', text: 'On-demand billing: no capacity to run out of.' }];
  }
  const units = provisioned?.WriteCapacityUnits ?? 0;
  if (units === 0) return [];
  return [
    {
      level: 'note',
      text:
        `Provisioned for ${units} writes a second: beyond that DynamoDB throttles, and renewals may come too late. ` +
        'On-demand billing does not.',
    },
  ];
}
