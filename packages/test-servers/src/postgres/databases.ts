/** Single statements to a PostgreSQL, each over its own connection. */
import pg from 'pg';
import { randomName } from '../clock.js';

/** The first column of the first row, as text. */
export async function queryOnce(url: string, sql: string): Promise<string> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 5000,
    query_timeout: 20_000,
  });
  let lost: Error | undefined;
  client.on('error', (error) => {
    lost = error;
  });
  try {
    await client.connect();
    const { rows } = await client.query<unknown[]>({ text: sql, rowMode: 'array' });
    return String(rows[0]?.[0] ?? '');
  } catch (error) {
    throw lost ?? error;
  } finally {
    await client.end();
  }
}

export async function createDatabase(url: string): Promise<string> {
  const name = `holdfast_${randomName()}`;
  await queryOnce(url, `CREATE DATABASE ${name}`);
  const made = new URL(url);
  made.pathname = `/${name}`;
  return made.href;
}

export async function dropDatabase(url: string, made: string): Promise<void> {
  await queryOnce(url, `DROP DATABASE IF EXISTS ${new URL(made).pathname.slice(1)} WITH (FORCE)`);
}
