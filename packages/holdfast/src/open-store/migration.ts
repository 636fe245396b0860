/** What has to be at a server before locks can be kept there. */
import { InvalidArgumentError } from '../protocol/index.js';

export interface MigrationOptions {
  /** For PostgreSQL: also grant what the Supabase store needs. Default false. */
  readonly supabase?: boolean;
  /**
   * For DynamoDB: turn time to live on at a table that is there already, too. DynamoDB then deletes every item of it
   * whose attribute has passed, an application's too. Default false: such a table is not changed.
   */
  readonly timeToLive?: boolean;
}

export interface Migration {
  /** What is made: a schema of PostgreSQL, a table of DynamoDB, a bucket of NATS. */
  readonly kind: 'schema' | 'table' | 'bucket';
  readonly name: string;
  /**
   * All of it in a form for other tools, for those who run their own migrations: SQL, a CloudFormation template, the
   * configuration of a stream.
   */
  readonly script: string;
  /** Makes it, or brings it to this version. */
  apply(): Promise<AppliedMigration>;
}

export interface AppliedMigration {
  /** The version found; 0 where nothing was found. */
  readonly from: number;
  /** The version now. */
  readonly to: number;
  /** Sentences about what was found or done beside that. */
  readonly notes: readonly string[];
}

/** Tables and buckets have this one, as long as their form does not change. */
export const FIRST_VERSION = 1;

/** Options that mean something to another kind of store only. */
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
