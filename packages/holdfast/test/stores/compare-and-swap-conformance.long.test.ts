/** The model of the suite, with all its sequences. */
import './compare-and-swap-conformance.test.js';
