/** What this table, as configured, guarantees. */
import { type Finding, type Guarantees, UnsupportedError } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import type { Reading } from '../compare-and-swap/register.js';
import type { DynamodbClient } from './client.js';
import { nameOf } from './errors.js';
import { NATIVE } from './native-layout.js';
import type { Place } from './options.js';
import { describe, type Table, timeToLiveFinding, timeToLiveOf, wrongKey } from './table.js';

export async function probe(
  client: DynamodbClient,
  { table, layout }: Place,
  { earliest, latest }: Reading,
): Promise<Guarantees> {
  const found = await orNote(() => describe(client, table), 'dynamodb:DescribeTable');
  const described = found && !('level' in found) ? found : null;
  const wrong = described && wrongKey(described, layout.table);
  const findings = findingsOf(
    good(
      `DynamoDB's clock decides, known to ${latest - earliest} ms now by the Date header of its replies: no client's clock ` +
        'matters. An expired lock may be taken over that much later.',
    ),
    found && 'level' in found && found,
    wrong !== null && warning(`The table "${table}" does not fit: ${wrong}.`),
    described && serverFinding(described),
    described && regionFinding(described),
    described && billingFinding(described),
    await orNote(
      async () => timeToLiveFinding(await timeToLiveOf(client, table), layout),
      'dynamodb:DescribeTimeToLive',
    ),
    layout.name !== NATIVE &&
      note(
        `The layout ${layout.name}: the other software uses the clocks of its own machines, which have to be right.`,
      ),
    note('DynamoDB has no wake-ups: waiters poll, at most a few times per second.'),
  );
  return { server: serverOf(described), now: Math.round((earliest + latest) / 2), findings };
}

/** A finding instead, where the call is not allowed or not known: locks do not need it. */
async function orNote<T>(ask: () => Promise<T>, right: string): Promise<T | Finding> {
  try {
    return await ask();
  } catch (error) {
    const isRefused = error instanceof UnsupportedError;
    if (!isRefused && nameOf(error) !== 'UnknownOperationException') throw error;
    const because = messageOf(isRefused ? error.cause : error);
    return note(`Not everything could be checked, because ${right} is missing: ${because}`);
  }
}

function serverOf(found: Table | null): string {
  const region = found?.TableArn?.split(':')[3];
  if (region === undefined) return 'DynamoDB';
  return region === 'ddblocal' ? 'DynamoDB Local' : `DynamoDB in ${region}`;
}

function serverFinding(found: Table): Finding {
  return found.TableArn?.includes(':ddblocal:')
    ? warning('This is DynamoDB Local, made for tests: its data may be lost with it.')
    : good('Every write is on disk in three zones before it is answered: a crash loses no lock.');
}

/** Each region accepts writes and replicates them later, unless the table is strongly consistent. */
function regionFinding({
  Replicas: replicas = [],
  MultiRegionConsistency: consistency,
}: Table): Finding | null {
  if (replicas.length === 0) return null;
  if (consistency === 'STRONG') {
    return good('A global table with strong consistency: locks hold across its regions.');
  }
  const names = replicas.map(({ RegionName }) => RegionName ?? '?').join(', ');
  return warning(
    `This is a global table with replicas in ${names}: two regions may both grant one lock. Take locks in one region ` +
      'only, or use a table without replicas, or one with multi-region strong consistency.',
  );
}

function billingFinding({
  BillingModeSummary: billing,
  ProvisionedThroughput: provisioned,
}: Table): Finding | null {
  if (billing?.BillingMode === 'PAY_PER_REQUEST') {
    return good('On-demand billing: the capacity cannot run out.');
  }
  const units = provisioned?.WriteCapacityUnits ?? 0;
  if (units === 0) return null;
  return note(
    `Provisioned for ${units} writes per second: beyond that DynamoDB throttles, and renewals may come too late. ` +
      'On-demand billing does not.',
  );
}
