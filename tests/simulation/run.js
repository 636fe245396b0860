/** The simulation as a command: `npm run simulate -- --help`. Needs the built library. */
import { simulate } from 'holdfast/testkit';

process.exitCode = await simulate(process.argv.slice(2), process.stdout);
