/** The model of the suite, with all its sequences. */
import './conformance-18.test.js';
