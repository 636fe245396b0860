/** Asks the process that opened the test run for a server that all of its processes share. */

/** Where that process answers. */
export const SHARED_VARIABLE = 'HOLDFAST_SHARED_SERVERS';

/** Undefined where nobody shares servers, as in a program that runs alone. */
export async function sharedUrl(server: string): Promise<string | undefined> {
  const address = process.env[SHARED_VARIABLE];
  if (address === undefined || address === '') return undefined;
  const answer = await fetch(`${address}/${server}`);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the shared server ${server} did not start: ${text}`);
  return text;
}
