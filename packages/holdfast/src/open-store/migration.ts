/** What has to be at a server before locks can be kept there. */
import { InvalidArgumentError } from '../protocol/index.js';

export interface MigrationOptions {
  /** For PostgreSQL: whether to grant what the Supabase store needs as well. */
  readonly supabase?: boolean;
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
  /** Makes it, or brings it to this version: from 0 when there was none. */
  apply(): Promise<{ readonly from: number; readonly to: number }>;
}

/** Tables and buckets have this one, as long as their form does not change. */
export const FIRST_VERSION = 1;

export function refuseSupabase({ supabase }: MigrationOptions, scheme: string): void {
  if (supabase === true) throw new InvalidArgumentError(`Supabase is PostgreSQL, and not ${scheme}:.`);
}
