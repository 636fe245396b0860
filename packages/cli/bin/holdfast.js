#!/usr/bin/env node
/**
 * Starts the command. The published package has it in few files, which start with two thirds of its modules' processor time; the
 * repository has the modules only. This file is CommonJS, because Node starts that sooner.
 *
 * The service needs the modules: its errors are those of the library that it imports, not of a copy in those files.
 */
const OF_SERVICE = ['serve', 'api-key'];
/** Variables of LockServiceCentral, which the service reads. */
const CENTRAL = /^(?:locker[._]|spring[._]profiles[._]active$)/i;

function needsModules() {
  return (
    OF_SERVICE.some((name) => process.argv.includes(name)) ||
    Object.keys(process.env).some((name) => CENTRAL.test(name))
  );
}

function startBundle() {
  // Without Node's compile cache: it is in the folder for temporary files, where another user may have put other code.
  try {
    require('../dist/holdfast.cjs');
    return true;
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    return false;
  }
}

if (needsModules() || !startBundle()) {
  void import('../dist/printing/standard-streams.js').then(() => import('../dist/main.js'));
}
