/** What PostgREST, or the gateway before it, refuses for good: nothing was done, and asking again will not help. */
import { UnsupportedError } from '../../protocol/index.js';

export interface Answer {
  /** As the client gave it. */
  readonly error: unknown;
  /** PostgREST's own, `PGRST…`, or PostgreSQL's SQLSTATE; '' when neither spoke. */
  readonly code: string;
  readonly message: string;
  /** Of HTTP; 0 when nothing was reached. */
  readonly status: number;
}

const NOT_THERE = ['PGRST106', 'PGRST202', 'PGRST203', 'PGRST205', '3F000', '42883', '42P01', '42703'];
const NOT_LET_IN = ['PGRST300', 'PGRST301', 'PGRST302', 'PGRST303'];

/** Null where it is not known what happened. */
export function refusalOf(answer: Answer, schema: string): UnsupportedError | null {
  const { code, message, status, error: cause } = answer;
  const because = `(${message.slice(0, 300)})`;
  if (code === '42501') {
    return new UnsupportedError(
      `This key may not use the schema "${schema}" ${because}. Use the service-role key, on a server only, ` +
        'and run migrate(client, { supabase: true }).',
      { cause },
    );
  }
  const isRoleUnknown = code === '22023' && message.startsWith('role ');
  if (NOT_LET_IN.includes(code) || isRoleUnknown || (code === '' && status === 401)) {
    return new UnsupportedError(
      `The key was not accepted ${because}. Use the service-role key of this project, as it is now.`,
      { cause },
    );
  }
  if (NOT_THERE.includes(code) || (code === '' && (status === 404 || status === 406))) {
    return new UnsupportedError(
      `The schema "${schema}" is not to be found there ${because}. Run migrate(client, { supabase: true }) over a ` +
        `connection to the database, and expose the schema "${schema}" in the project's API settings.`,
      { cause },
    );
  }
  return null;
}
