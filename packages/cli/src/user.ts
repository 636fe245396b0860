/** The user who is logged in. */
import { userInfo } from 'node:os';

/** The user's number if there is no name, as in a container. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    return String(process.getuid?.() ?? 'unknown');
  }
}
