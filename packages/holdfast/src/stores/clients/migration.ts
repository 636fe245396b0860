/** The schema, table or bucket that a store needs at its server. */
import { InvalidArgumentError } from '../../protocol/index.js';

/** Options of a migration. */
export interface MigrationOptions {
  /** For PostgreSQL: also grant what the Supabase store needs. Default false. */
  readonly supabase?: boolean;
  /**
   * For DynamoDB: turn time to live on for an existing table, too. DynamoDB then deletes every item of it whose
   * attribute has passed, also items of other applications. Default false: an existing table is not changed.
   */
  readonly timeToLive?: boolean;
}

/** A migration that has not run yet: setting up a store, or bringing it to this version. */
export interface Migration {
  /** What is made: a schema of PostgreSQL, a table of DynamoDB or MySQL, a bucket of NATS, a quorum of Redis servers. */
  readonly kind: 'schema' | 'table' | 'bucket' | 'quorum';
  /** Its name: that of the schema, the table or the bucket, or the prefix of the quorum. */
  readonly name: string;
  /** The same for other tools: SQL, a CloudFormation template, the configuration of a stream. */
  readonly script: string;
  /** Creates it, or brings it to this version. */
  apply(): Promise<AppliedMigration>;
}

/** The result of a migration. */
export interface AppliedMigration {
  /** The version found; 0 where nothing was found. */
  readonly from: number;
  /** The version now. */
  readonly to: number;
  /** Sentences about other findings and changes. */
  readonly notes: readonly string[];
}

/** Of a table or bucket, which have one version until their form changes. */
export function createdOnce(created: boolean, notes: readonly string[] = []): AppliedMigration {
  return { from: created ? 0 : 1, to: 1, notes };
}

/** Refuses options that concern another kind of store. */
export function refuseOptions(
  options: MigrationOptions,
  names: readonly (keyof MigrationOptions)[],
  scheme: string,
): void {
  const given = names.find((name) => options[name] === true);
  if (given === 'supabase') throw new InvalidArgumentError(`Supabase is PostgreSQL, and not ${scheme}:.`);
  if (given === 'timeToLive') {
    throw new InvalidArgumentError(`Time to live is a setting of DynamoDB, and not of ${scheme}:.`);
  }
}
