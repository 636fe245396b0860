/** A clock that all processes of this machine share, in milliseconds: it never steps, and its zero means nothing. */
export function machineMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}
